"""A slot that is filled in two ways: one half by the copy engine, whose bytes the barrier counts, the other by a role that arrives on it."""

from pathlib import Path

import numpy as np
from vertical import BF16, agree, codes, compiles, generated, passes, simulated

BOTH = """
@cake.schedule(target="sm_90a")
def both(lm, A: LM.tma2d[LM.bf16, "M", 64], B: LM.gmem2d[LM.bf16, "M", 64], Y: LM.gmem2d[LM.bf16, "M", 64], M: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(65536)
    left = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    right = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    fill = lm.role(warps=range(4, 8))
    load = lm.role(warps=range(8, 9))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load, fill], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load, fill], arrive="warp", primed=True)
    own = lm.named_barrier(fill)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64),), names=("m",))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            left.tma_load(A, coords=(0, t.m * 64), stage=s, barrier=full)
    with fill:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            right[s].store(lm.load(B, coords=(0, t.m * 64), shape=(64, 64), form="acc", clip=True))
            lm.sync(own)
            lm.arrive(full, stage=s)
    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            x = left[s].load(form="acc")
            y = right[s].load(form="acc")
            lm.fence_proxy()
            lm.arrive(empty, stage=s)
            lm.store(Y, lm.cast(lm.cast(x, lm.f32) + lm.cast(y, lm.f32), lm.bf16), coords=(0, t.m * 64), clip=True)
"""


def test_an_arrival_beside_bytes_is_counted_with_them(tmp_path: Path) -> None:
    passes(BOTH)
    text = compiles(BOTH)
    assert "if (thread == 0) mbarrier_arrive(" in text, text
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 9, (300, 64)).astype(BF16) for _ in "ab")
    tensors = {"A": a, "B": b, "Y": np.full((300, 64), 7, BF16)}
    got = simulated(BOTH, tensors, {"M": 300}, ctas=2, every=True)
    agree(got, generated(BOTH, tensors, {"M": 300}, tmp_path, clusters=2))
    assert (got["Y"].astype(np.float32) == a.astype(np.float32) + b.astype(np.float32)).all()


def test_one_thread_arrives_so_the_other_threads_stores_are_behind_a_sync() -> None:
    assert codes(BOTH.replace("            lm.sync(own)\n", "")), "the elected thread does not wait for the stores of the others"


def test_the_other_filler_is_counted() -> None:
    assert codes(BOTH.replace("            lm.arrive(full, stage=s)\n    with work", "    with work")) & {"S002", "S008"}
