"""S052: what a region of tensor memory is brought up to date with is not lost."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import TmemT
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

SUMMED = '''
@cake.schedule(target="sm_100a")
def summed(lm, A: LM.tma2d[LM.bf16, 128, "K"], B: LM.tma2d[LM.bf16, 64, "K"], F: LM.gmem1d[LM.f32, "T"], C: LM.gmem2d[LM.f32, 128, 64], K: LM.i32, T: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(K > 0 and T == lm.cdiv(K, 64))
    pool = lm.smem(49152)
    a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=32768, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    o = lm.tmem(cols=0, width=64, shape=(128, 64), dtype=lm.f32)
    load = lm.role(warps=[0])
    mul = lm.role(warps=[1])
    fade = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mul], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[mul], cons=[load], arrive="mma", primed=True)
    turn = lm.pipeline(stages=1)
    added = lm.barrier(pipeline=turn, prod=[mul], cons=[fade], arrive="mma")
    faded = lm.barrier(pipeline=turn, prod=[fade], cons=[mul], arrive="warp", primed=True)
    n = lm.cdiv(K, 64)
    with load:
        for k in lm.range(n):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            a.tma_load(A, coords=(k * 64, 0), stage=s, barrier=full)
            b.tma_load(B, coords=(k * 64, 0), stage=s, barrier=full)
    with mul:
        for k in lm.range(n):
            s = lm.step(ring)
            w = lm.step(turn)
            lm.wait(full, stage=s)
            lm.wait(faded, stage=w)
            lm.mma(o, a[s], b[s], init=(k == 0))
            lm.commit(empty, stage=s)
            lm.commit(added, stage=w)
    with fade:
        for k in lm.range(n):
            w = lm.step(turn)
            f = lm.ld(F, k)
            lm.wait(added, stage=w)
            x = lm.tmem_load(o)
            lm.tmem_wait("ld")
            if k + 1 < n:
                lm.tmem_store(o, x * f)
                lm.tmem_wait("st")
            else:
                lm.store(C, x * f, coords=(0, 0))
            lm.arrive(faded, stage=w)
'''

PAGE = Page(
    code="S052",
    title="an update of tensor memory that the next product overwrites",
    statement="Where a loop reads a region of tensor memory, changes it and writes it back, not every product into the region starts from zero.",
    why="A sum that is rescaled between its products is in vain where the next of them starts anew: only the last block's product is left, right for one round.",
    failing=edit(SUMMED, ("init=(k == 0)", "init=True")),
    passing=SUMMED,
    limits="Decided for regions that nothing in the loop reads behind the write. What a kernel stages in a region for its own reads is left alone.",
)  # fmt: skip


def check(program: Program) -> Iterator[Fault]:
    if not program.tmems:
        return
    products: dict[str, list[Site]] = {}
    read: set[str] = set()
    for s in sites(program).of("mma"):
        products.setdefault(_region(s, "acc"), []).append(s)
        read.add(_region(s, "a"))
    for s in sites(program).of("tmem_store"):
        region = _region(s, "t")
        into = products.get(region)
        if not into or region in read or not s.loops or s.loops[-1].kind == "tiles" or not all(_from_zero(p) for p in into):
            continue
        own = [x for x in sites(program).of("tmem_load") if x.role is s.role and _region(x, "t") == region and s.loops[-1] in x.loops]
        before = [x for x in own if x.order < s.order]
        if not before or len(before) != len(own) or not _made_of(program, s, before):
            continue
        p = into[0]
        message = f"what {call(s.op)} brings `{region}` up to date with is never read: {call(p.op)}, the next product, starts from zero"
        yield Fault("S052", message, p.op.spans.get("init", p.op.span), ((s.op.span, "written back here"), (before[0].op.span, "read here")), "add to it, and start from zero in the first round only", (),
                    {"role": p.role.name, "region": region})  # fmt: skip


def _region(s: Site, operand: str) -> str:
    e = s.op.operands.get(operand)
    return e.type.tmem if isinstance(e, Expr) and isinstance(e.type, TmemT) else ""


def _from_zero(s: Site) -> bool:
    """Whether a product in a loop starts from zero in every round."""
    init = s.op.operands.get("init")
    return isinstance(init, Expr) and init.op == "const" and bool(init.attrs["value"]) and bool(s.loops) and s.loops[-1].kind != "tiles"


def _made_of(program: Program, s: Site, loads: list[Site]) -> bool:
    """Whether what is written back is computed from what one of these loads has read."""
    names = {t for x in loads for t in x.targets}
    x = s.op.operands.get("x")
    waiting, seen = [x], set[str]()
    while waiting:
        e = waiting.pop()
        for n in e.parts() if isinstance(e, Expr) else ():
            name = str(n.attrs["name"]) if n.op == "var" else ""
            if name in names:
                return True
            if name and name not in seen:
                seen.add(name)
                waiting += [b.op.operands.get("value") for b in sites(program).results.get((s.role.name, name), ())]
    return False
