"""Flags between CTAs in roles that only issue: one thread waits for the word and starts the copies, or waits for its stores and raises it."""

from pathlib import Path

import numpy as np
from vertical import BF16, agree, codes, compiles, generated, passes, program, simulated

from cake_ir.derive.issue import issue_roles
from cake_ir.derive.named_ids import named_ids

TWICE = """
@cake.schedule(target="sm_90a")
def twice(lm, X: LM.tma2d[LM.bf16, "M", 64], H: LM.tma2d[LM.bf16, "M", 64], Y: LM.tma2d[LM.bf16, "M", 64], done: LM.gmem1d[LM.i32, "W"].zeroed, M: LM.i32, W: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(W == lm.cdiv(M, 64))
    pool = lm.smem(2 * 8192 + 8192)
    tin = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    tout = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    keep = lm.role(warps=range(8, 12))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    outs = lm.pipeline(stages=1)
    staged = lm.barrier(pipeline=outs, prod=[math], cons=[keep], arrive="warp")
    gone = lm.barrier(pipeline=outs, prod=[keep], cons=[math], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(W, 2), names=("m", "p"))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            if t.p == 0:
                tin.tma_load(X, coords=(0, t.m * 64), stage=s, barrier=full)
            else:
                lm.spin(done, t.m, 1)
                tin.tma_load(H, coords=(0, t.m * 64), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            x = tin[s].load(form="acc")
            lm.arrive(empty, stage=s)
            o = lm.step(outs)
            lm.wait(gone, stage=o)
            tout[o].store(lm.cast(lm.cast(x, lm.f32) * 2.0, lm.bf16))
            lm.fence_proxy()
            lm.arrive(staged, stage=o)
    with keep:
        for t in lm.tiles(sched):
            o = lm.step(outs)
            lm.wait(staged, stage=o)
            if t.p == 0:
                tout[o].tma_store(H, coords=(0, t.m * 64))
                lm.store_wait(pending=0, read=False)
                lm.signal(done, t.m, 1)
            else:
                tout[o].tma_store(Y, coords=(0, t.m * 64))
                lm.store_wait(pending=0)
            lm.arrive(gone, stage=o)
"""


def test_one_thread_waits_for_a_flag_and_another_raises_it(tmp_path: Path) -> None:
    passes(TWICE)
    p = program(TWICE)
    assert issue_roles(p) == {"load", "keep"} and not [i for i in named_ids(p) if i.kind == "member"]
    x = np.random.default_rng(0).integers(-9, 9, (150, 64)).astype(BF16)
    tensors = {"X": x, "H": np.zeros_like(x), "Y": np.zeros_like(x), "done": np.zeros(3, np.int32)}
    got = simulated(TWICE, tensors, {"M": 150, "W": 3}, ctas=2, every=True)
    agree(got, generated(TWICE, tensors, {"M": 150, "W": 3}, tmp_path, clusters=1))
    assert (got["Y"] == x * BF16(4)).all() and (got["done"] == 1).all()
    code = compiles(TWICE)
    assert "thread == 0" not in code and "bar.sync 1" not in code


def test_without_the_wait_or_the_end_of_the_store_the_blocks_race() -> None:
    assert codes(TWICE.replace("                lm.spin(done, t.m, 1)\n", "")) == {"S039"}
    assert codes(TWICE.replace("pending=0, read=False", "pending=0")) == {"S039"}
    assert codes(TWICE.replace("                lm.signal(done, t.m, 1)\n", "")) == {"S041"}
