"""D037: the tiles of one product are masked along one diagonal."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SCORES = '''
@cake.schedule(target="sm_90a")
def top(lm, Q: LM.tma2d[LM.bf16, "S", 64], K: LM.tma2d[LM.bf16, "S", 64], Y: LM.gmem1d[LM.f32, "S"], S: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(S > 0)
    pool = lm.smem(8192 + 2 * 8192)
    q = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    k = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    once = lm.pipeline(stages=1)
    there = lm.barrier(pipeline=once, prod=[load], cons=[math], arrive="tx")
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(S, 64),), names=("m",))
    with load:
        for t in lm.tiles(sched):
            o = lm.step(once)
            q.tma_load(Q, coords=(0, t.m * 64), stage=o, barrier=there)
            for j in lm.range(t.m + 1):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                k.tma_load(K, coords=(0, (t.m - j) * 64), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            lm.wait(there, stage=lm.step(once))
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            row = lm.iota(acc, axis=0, base=t.m * 64)
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(acc, q, k[s], init=True)
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=s)
            x = lm.where(lm.iota(acc, axis=1, base=t.m * 64) <= row, acc, -lm.inf)
            best = lm.reduce(x, "max", axis=1)
            for j in lm.range(1, t.m + 1):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, q, k[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                y = lm.where(lm.iota(acc, axis=1, base=(t.m - j) * 64) <= row, acc, -lm.inf)
                best = lm.max(best, lm.reduce(y, "max", axis=1))
            lm.store(Y, best, coords=(t.m * 64,), mask=row < S)
'''

OF_VALUES = True

PAGE = Page(
    code="D037",
    title="tiles of one product masked along two diagonals",
    statement="Where a role masks the products of two tensors by the distance of column and row, as causal and windowed attention do, it lets the same distances pass in every tile, and a tile "
    "that it does not mask before a maximum has only elements that would pass.",
    why="Masks are written once for the first tile and once for the loop, or left out where tiles lie on one side of the diagonal. One of them off by an element, or a tile more that needs one, lets every row see "
    "what it must not.",
    failing=edit(_SCORES, ("base=(t.m - j) * 64) <= row, acc", "base=(t.m - j) * 64) <= row + 1, acc")),
    passing=_SCORES,
    limits="Decided in one run, for rows and columns that run along one axis by the names that tensor parameters declare, and for masks made of comparisons of `lm.iota` that all have to hold and put an infinity elsewhere. "
    "Distances that differ by tile under one mask, as windows by head do, are left alone.",
)
