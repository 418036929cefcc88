"""P010: the tensor role waits for its own work before it hands an accumulator over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.sites import Site, sites
from cake_verify.rule import Page

_DRAIN = '''
@cake.schedule(target="sm_100a")
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32], M: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(65536)
    a = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=32768, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    acc = lm.tmem(cols=0, width=256, shape=(128, 256), dtype=lm.f32)
    out = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    mma = lm.role(warps=[5])
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True)
    own = lm.pipeline(stages=1)
    drained = lm.barrier(pipeline=own, prod=[mma], cons=[mma], arrive="mma")
    accs = lm.pipeline(stages=2)
    ready = lm.barrier(pipeline=accs, prod=[mma], cons=[out], arrive="member")
    free = lm.barrier(pipeline=accs, prod=[out], cons=[mma], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), 1))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            a.tma_load(A, coords=(0, t.m * 128), stage=s, barrier=full)
            b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
    with mma:
        for t in lm.tiles(sched):
            d = lm.step(accs)
            lm.wait(free, stage=d)
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(acc.cols(128 * d.index, 128), a[s], b[s], init=True)
            lm.commit(empty, stage=s)
            e = lm.step(own)
            lm.commit(drained, stage=e)
            lm.wait(drained, stage=e)
            lm.arrive(ready, stage=d)
    with out:
        for t in lm.tiles(sched):
            d = lm.step(accs)
            lm.wait(ready, stage=d)
            c = lm.tmem_load(acc.cols(128 * d.index, 128))
            lm.tmem_wait("ld")
            lm.arrive(free, stage=d)
            lm.store(C, c, coords=(0, t.m * 128), clip=True)
'''

PAGE = Page(
    code="P010",
    title="a drain before the hand-over",
    statement="A role that issues tensor-memory MMAs tells the next role with `lm.commit` on its barrier, rather than with a wait for its own work and an arrive, while another accumulator is free.",
    why="The wait leaves the tensor core idle from the end of one tile to the first MMA of the next. A commit arrives by itself when the work has completed, and the role goes on to the other accumulator.",
    failing=_DRAIN,
    passing=_DRAIN.replace('ready = lm.barrier(pipeline=accs, prod=[mma], cons=[out], arrive="member")', 'ready = lm.barrier(pipeline=accs, prod=[mma], cons=[out], arrive="mma")')
    .replace("            e = lm.step(own)\n            lm.commit(drained, stage=e)\n            lm.wait(drained, stage=e)\n            lm.arrive(ready, stage=d)\n", "            lm.commit(ready, stage=d)\n")
    .replace("    own = lm.pipeline(stages=1)\n    drained = lm.barrier(pipeline=own, prod=[mma], cons=[mma], arrive=\"mma\")\n", ""),
    limits="Noted where the arrive follows the wait at once, and the ring it is on has two slots or more.",
    severity="note",
)


def check(program: Program) -> Iterator[Fault]:
    found = sites(program)
    if all(b.arrive != "mma" for b in program.barriers.values()):
        return
    for role in program.roles:
        for wait, arrive in pairwise(found.of_role(role)):
            if _drains(program, wait) and _hands_over(program, arrive):
                name = str(arrive.op.attrs["barrier"])
                yield Fault("P010", f"`{role}` waits for its own work before it arrives on `{name}`: the tensor core is idle although another slot is free", wait.op.span,
                            ((arrive.op.span, "handed over here"),), f'declare `{name}` with `arrive="mma"` and write `lm.commit({name}, ..)` in place of both', (), {"barrier": name}, severity="note")  # fmt: skip


def _drains(program: Program, s: Site) -> bool:
    b = program.barriers.get(str(s.op.attrs.get("barrier")))
    return s.op.name == "wait" and b is not None and b.arrive == "mma" and b.prod == b.cons == (s.role.name,)


def _hands_over(program: Program, s: Site) -> bool:
    b = program.barriers.get(str(s.op.attrs.get("barrier")))
    return s.op.name == "arrive" and b is not None and s.role.name not in b.cons and program.rings[b.pipeline].stages > 1
