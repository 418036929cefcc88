"""Names defined by names: forty definitions that each read the one before several times, wherever an integer can stand.

Put in place of each other, they are one expression of few distinct parts and of more nodes than a machine holds. Each text gets a verdict in
2 s of processor time and 200 MB.
"""

import itertools
import json

import pytest

from cake_verify import verify_text
from cake_verify.rules.examples import TILE, edit

FORMS = {
    "doubled": "{x} + {x}", "trebled": "{x} * 2 + {x}", "least": "lm.min({x}, {x})", "squared": "{x} * {x}", "shifted": "({x} << 1) | {x}", "divided": "lm.cdiv({x}, 2) + {x} % 7 + {x} // 3",
    "chosen": "{x} if {x} > 3 else {x} - 1", "negated": "0 - {x} - {x}", "wide": " + ".join(["{x}"] * 12), "factors": "({x} + 1) * ({x} - 1)",
}  # fmt: skip
TEXT = """
@cake.schedule(target="sm_90a")
def names(lm, X: LM.gmem2d[LM.f32, "M", "N"], Y: LM.gmem2d[LM.f32, "M", "N"], B: LM.tma2d[LM.bf16, "M", "N"], C: LM.tma2d[LM.bf16, "M", "N"],
          P: LM.gmem1d[LM.i32, "G"], F: LM.gmem1d[LM.i32, "G"], N: LM.i32, M: LM.i32, G: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(N > 0 and M > 0 and N % 64 == 0)
    lm.assume_values(P, 0, N + 1)
    #host
    pool = lm.smem(65536)
    tile = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=4, swizzle="128b")
    out = pool.view(offset=32768, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    words = pool.view(offset=49152, shape=(64,), dtype=lm.i32)
    load = lm.role(warps=[0])
    work = lm.role(warps=range(4, 8))
    own = lm.named_barrier(work)
    ring = lm.pipeline(stages=4)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work])
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 64)), names=("m", "n"))
    with load:
        for t in lm.tiles(sched):
            #load
            for k in lm.range(2):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                tile.tma_load(B, coords=(t.n * 64, t.m * 64), barrier=full, stage=s)
    with work:
        for t in lm.tiles(sched):
            #work
            for j in lm.range(2):
                #inner
                s = lm.step(ring)
                lm.wait(full, stage=s)
                x = tile[s].load(form="acc")
                y = lm.cast(x, lm.f32)
                lm.arrive(empty, stage=s)
                lm.store(Y, y, coords=(t.n * 64, t.m * 64), clip=True)
"""
STORE, COPY, CAST = "lm.store(Y, y, coords=(t.n * 64, t.m * 64), clip=True)", "tile.tma_load(B, coords=(t.n * 64, t.m * 64)", "y = lm.cast(x, lm.f32)"
PAD = "\n" + " " * 16
WORK = {  # places in the work role: what is written there, V for the name
    "column of a store": (STORE, "lm.store(Y, y, coords=(V, t.m * 64), clip=True)"),
    "row of a store": (STORE, "lm.store(Y, y, coords=(t.n * 64, V * 64))"),
    "load": (STORE, f"z = lm.load(X, coords=(V, t.m), shape=(64,), clip=True){PAD}lm.store(Y, z, coords=(0, 0), clip=True)"),
    "condition": (STORE, f"if V > 3 and V < 900 or V == work.index:{PAD}    {STORE}{PAD}elif V % 64 == 0:{PAD}    lm.store(X, y, coords=(0, 0), clip=True)"),
    "loop": (STORE, f"for i in lm.range(V):{PAD}    {STORE}"),
    "both ends of a loop": (STORE, f"for i in lm.range(V, V + 2):{PAD}    lm.store(Y, y, coords=(i, t.m * 64), clip=True)"),
    "selection": (CAST, "y = lm.where(lm.iota(x, axis=1, base=V) < V, lm.cast(x, lm.f32), -lm.inf)"),
    "value": (CAST, "y = lm.cast(x, lm.f32) * lm.cast(V, lm.f32)"),
    "bounds of a mask": (STORE, "lm.store(Y, y, coords=(t.n * 64, t.m * 64), mask=lm.in_bounds(y, rows=M - V, cols=N - V))"),
    "mask": (STORE, "lm.store(Y, y, coords=(t.n * 64, t.m * 64), mask=lm.iota(y, axis=1, base=V) < V)"),
    "rows of a view": ("x = tile[s].load", "x = tile[s].rows(V, 64).load"),
    "columns of a view": ("x = tile[s].load", "x = tile[s].cols(V % 8 * 8, 8).load"),
    "slot": ("tile[s].load", "tile[V % 4].load"),
    "index of a read": (STORE, f"i = lm.ld(P, V){PAD}lm.store(Y, y, coords=(i, t.m * 64), clip=True)"),
    "index in a view": (STORE, f"i = words.ld(V){PAD}lm.store(Y, y, coords=(i, t.m * 64), clip=True)"),
    "signal": (STORE, f"{STORE}{PAD}lm.signal(F, V, V)"),
    "spin": (STORE, f"{STORE}{PAD}lm.signal(F, 0, 1){PAD}lm.spin(F, V % 4, V)"),
    "bulk store": (STORE, f"out[0].store(x){PAD}lm.fence_proxy(){PAD}lm.sync(own){PAD}out[0].tma_store(C, coords=(V, t.m * 64), rows=V){PAD}lm.store_wait(pending=0){PAD}lm.sync(own)"),
    "scatter": (STORE, "lm.store(Y, y, coords=(t.n * 64 + lm.iota(y, axis=1) + V, t.m * 64), clip=True)"),
    "atomic": (STORE, 'lm.atomic(Y, y, coords=(V, V), op="add", order="any", clip=True)'),
    "running number": (f"for j in lm.range(2):{PAD}#inner", f"q = 0\n            for j in lm.range(2):{PAD}q = q + V{PAD}#inner"),
    "first product": (CAST, f'y = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc"){PAD}lm.mma(y, tile[s], tile[s], init=(V > 0)){PAD}lm.mma_wait(pending=0)'),
    "trips of one role": ("            for j in lm.range(2)", "            for j in lm.range(V)"),
}  # fmt: skip
LOAD = {
    "column of a copy": (COPY, "tile.tma_load(B, coords=(V, t.m * 64)"), "row of a copy": (COPY, "tile.tma_load(B, coords=(t.n * 64, V)"),
    "slot of a copy": ("barrier=full, stage=s)\n    with work", "barrier=full, stage=V)\n    with work"), "copies left out": (COPY, f"if V > 0:{PAD}    {COPY}"),
}  # fmt: skip
HOST = {
    "assumption": ("    pool = lm.smem", "    lm.assume(M == V)\n    pool = lm.smem"), "assumed multiple": ("    pool = lm.smem", "    lm.assume(V % 8 == 0 and V > 0)\n    pool = lm.smem"),
    "tiles": ("lm.cdiv(N, 64))", "lm.cdiv(V, 64))"), "assumed values": ("lm.assume_values(P, 0, N + 1)\n    #host", "#host\n    lm.assume_values(P, 0, V)"),
    "trips": ("for j in lm.range(2)", "for j in lm.range(V)"), "bytes": ("lm.smem(65536)", "lm.smem(V)"),
}  # fmt: skip
PLACES = [
    *(("host", "N", what, place) for what, place in (HOST | LOAD | WORK).items()),
    *(("load", "t.n", what, place) for what, place in LOAD.items()),
    *((where, start, what, place) for where, start in (("work", "t.n"), ("work", "lm.ld(P, 0)"), ("work", "work.index"), ("inner", "j")) for what, place in WORK.items()
      if not (where == "inner" and what in ("running number", "trips of one role"))),
]  # fmt: skip
DEEP = 40


def named(form: str, where: str, start: str, place: tuple[str, str]) -> str:
    pad = " " * {"host": 4, "load": 12, "work": 12, "inner": 16}[where]
    chain = [f"v0 = {start}", *(f"v{i} = {FORMS[form].replace('{x}', f'v{i - 1}')}" for i in range(1, DEEP))]
    text = edit(TEXT, (place[0], place[1].replace("V", f"v{DEEP - 1}"))).replace(f"#{where}\n", f"\n{pad}".join(chain) + "\n")
    return "".join(line + "\n" for line in text.split("\n") if not line.lstrip().startswith("#"))


@pytest.mark.parametrize(("form", "where", "start", "what", "place"), [
    pytest.param(form, *at, id=f"{at[2]}, {form} {at[1]}") for form, at in zip(itertools.cycle(FORMS), PLACES, strict=False)
])  # fmt: skip
def test_names_of_names_are_worked_out_once_wherever_they_stand(bounded, form, where, start, what, place):
    text = named(form, where, start, place)
    verify_text(TILE)  # rules are imported once a process
    with bounded():
        verdict = verify_text(text, outputs={"Y": "an output", "C": "another"} if what == "bulk store" else {"Y": "an output"})
        shown = verdict.to_text() + json.dumps(verdict.to_json(limit=None))
    assert not [d.facts for d in verdict.diagnostics if d.code == "N999"]
    assert verdict.verdict in ("pass", "fail", "undecided") and len(shown) < 40_000
