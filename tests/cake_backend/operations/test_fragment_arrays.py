"""Arrays of fragments numbered by a ring: declared inside a loop that is itself inside the loop over tiles."""

from pathlib import Path

import numpy as np
import pytest
from vertical import BF16, agree, compiles, generated, passes, simulated

TWICE = """
@cake.schedule(target="sm_90a")
def scores(lm, X: LM.tma2d[LM.bf16, "ROWS", 64], MU: LM.tma2d[LM.bf16, "NK", 64], BEST: LM.gmem1d[LM.f32, "ROWS"], ROWS: LM.i32, NK: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(ROWS > 0 and ROWS % 128 == 0 and NK > 0 and NK % 32 == 0)
    pool = lm.smem(64 * 64 * 2 + 4 * 32 * 64 * 2)
    smem_x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=1, swizzle="128b")
    smem_c = pool.view(offset=64 * 64 * 2, shape=(32, 64), dtype=lm.bf16, stage=4, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    xr, cr, ar = lm.pipeline(stages=1), lm.pipeline(stages=4), lm.pipeline(stages=2)
    x_full = lm.barrier(pipeline=xr, prod=[load], cons=[math], arrive="tx")
    x_empty = lm.barrier(pipeline=xr, prod=[math], cons=[load], arrive="member", primed=True)
    c_full = lm.barrier(pipeline=cr, prod=[load], cons=[math], arrive="tx")
    c_empty = lm.barrier(pipeline=cr, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(ROWS // 128,), names=("m",))
    n = NK // 32
    with load:
        for t in lm.tiles(sched):
            for half in lm.range(2):
                sx = lm.step(xr)
                lm.wait(x_empty, stage=sx)
                smem_x.tma_load(X, coords=(0, t.m * 128 + half * 64), stage=sx, barrier=x_full)
                for k in lm.range(n):
                    s = lm.step(cr)
                    lm.wait(c_empty, stage=s)
                    smem_c.tma_load(MU, coords=(0, k * 32), stage=s, barrier=c_full)
    with math:
        for t in lm.tiles(sched):
            for half in lm.range(2):
                acc = lm.frag(shape=(64, 32), dtype=lm.f32, form="acc", stage=2)
                best = lm.rowvec(acc, init=-lm.inf)
                sx = lm.step(xr)
                lm.wait(x_full, stage=sx)
                s = lm.step(cr)
                a = lm.step(ar)
                lm.wait(c_full, stage=s)
                lm.mma(acc[a], smem_x[sx], smem_c[s], init=True)
                for k in lm.range(1, n):
                    s = lm.step(cr)
                    a = lm.step(ar)
                    lm.wait(c_full, stage=s)
                    lm.mma(acc[a], smem_x[sx], smem_c[s], init=True)
                    lm.mma_wait(pending=1)
                    lm.arrive(c_empty, stage=s.prev())
                    best = lm.max(best, lm.reduce(acc[a.prev()], "max", axis=1))
                lm.mma_wait(pending=0)
                lm.arrive(c_empty, stage=lm.at(cr))
                lm.arrive(x_empty, stage=sx)
                best = lm.max(best, lm.reduce(acc[a], "max", axis=1))
                lm.store(BEST, best, coords=(t.m * 128 + half * 64,))
"""


@pytest.mark.parametrize("centroids", [32, 96, 128])
def test_the_ring_starts_again_where_the_array_is_declared(tmp_path: Path, centroids: int) -> None:
    rng = np.random.default_rng(centroids)
    x, mu = (rng.integers(-3, 4, shape).astype(BF16) for shape in ((256, 64), (centroids, 64)))
    tensors = {"X": x, "MU": mu, "BEST": np.full(256, np.nan, np.float32)}
    scalars = {"ROWS": 256, "NK": centroids}
    passes(TWICE)
    got = simulated(TWICE, tensors, scalars, ctas=1)
    printed = generated(TWICE, tensors, scalars, tmp_path, clusters=1)
    agree(got, printed)
    assert (printed["BEST"] == (x.astype(np.float64) @ mu.astype(np.float64).T).max(1)).all()


def test_it_compiles_without_remarks() -> None:
    compiles(TWICE)
