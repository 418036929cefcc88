"""S051: an operand in tensor memory is written as what it is read as."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, Program, Tmem
from cake_ir.types import TmemT
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_CHAINED = '''
@cake.schedule(target="sm_100a")
def chained(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], V: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32]):
    pool = lm.smem(49152)
    a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=16384, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    v = pool.view(offset=32768, shape=(64, 128), dtype=lm.bf16, swizzle="128b")
    s = lm.tmem(cols=0, width=128, shape=(128, 128), dtype=lm.f32)
    p = lm.tmem(cols=0, width=64, shape=(128, 128), dtype=lm.bf16)
    o = lm.tmem(cols=128, width=64, shape=(128, 64), dtype=lm.f32)
    load = lm.role(warps=[0])
    mul = lm.role(warps=[1])
    relu = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mul], arrive="tx")
    first = lm.barrier(pipeline=ring, prod=[mul], cons=[relu], arrive="mma")
    ready = lm.barrier(pipeline=ring, prod=[relu], cons=[mul], arrive="warp")
    last = lm.barrier(pipeline=ring, prod=[mul], cons=[relu], arrive="mma")
    with load:
        n = lm.step(ring)
        a.tma_load(A, coords=(0, 0), stage=n, barrier=full)
        b.tma_load(B, coords=(0, 0), stage=n, barrier=full)
        v.tma_load(V, coords=(0, 0), stage=n, barrier=full)
    with mul:
        n = lm.step(ring)
        lm.wait(full, stage=n)
        lm.mma(s, a[n], b[n], init=True)
        lm.commit(first, stage=n)
        lm.wait(ready, stage=n)
        lm.mma(o, p, v[n], init=True)
        lm.commit(last, stage=n)
    with relu:
        n = lm.step(ring)
        lm.wait(first, stage=n)
        x = lm.tmem_load(s)
        lm.tmem_wait("ld")
        lm.tmem_store(p, lm.cast(lm.max(x, 0.0), lm.bf16))
        lm.tmem_wait("st")
        lm.arrive(ready, stage=n)
        lm.wait(last, stage=n)
        y = lm.tmem_load(o)
        lm.tmem_wait("ld")
        lm.store(C, y, coords=(0, 0))
'''

PAGE = Page(
    code="S051",
    title="an operand that nobody writes",
    statement="A region of tensor memory that a product reads as an operand is written by something, not only columns of it as a region of another type.",
    why="Regions may share columns, as scores and the probabilities made of them do. Without the store the tensor core reads the bits of f32 sums as pairs of 16-bit numbers: no wait is missing, and the result is noise.",
    failing=edit(_CHAINED, ("        lm.tmem_store(p, lm.cast(lm.max(x, 0.0), lm.bf16))\n        lm.tmem_wait(\"st\")\n", "")),
    passing=_CHAINED,
    limits="A region whose columns nothing writes under any name is S027's; what `lm.tmem_copy` brings to one of the same columns may be meant for the other.",
)  # fmt: skip


def check(program: Program) -> Iterator[Fault]:
    if not program.tmems:
        return
    written: dict[str, list[Site]] = {}
    for s in sites(program).of("mma", "tmem_store", "tmem_copy"):
        e = s.op.operands.get("acc" if s.op.name == "mma" else "t")
        if isinstance(e, Expr) and isinstance(e.type, TmemT):
            written.setdefault(e.type.tmem, []).append(s)
    for s in sites(program).of("mma"):
        e = s.op.operands.get("a")
        if not isinstance(e, Expr) or not isinstance(e.type, TmemT) or e.type.tmem in written:
            continue
        mine = program.tmems[e.type.tmem]
        others = [name for name in written if _share(mine, program.tmems[name])]
        if not others or any(program.tmems[name].dtype == mine.dtype or any(w.op.name == "tmem_copy" for w in written[name]) for name in others):
            continue
        by = written[others[0]][0]
        message = f"{call(s.op)} reads `{mine.name}` as {mine.dtype}, and nothing writes it: its columns hold what {call(by.op)} left in `{others[0]}`, which is {program.tmems[others[0]].dtype}"
        yield Fault("S051", message, s.op.spans.get("a", s.op.span), ((by.op.span, "written here"), (mine.span, "declared here")), f"store what is to be multiplied: `lm.tmem_store({mine.name}, ..)`", (),
                    {"role": s.role.name, "region": mine.name})  # fmt: skip


def _share(a: Tmem, b: Tmem) -> bool:
    """Whether two regions have columns in common."""
    return a.col < b.col + b.width and b.col < a.col + a.width
