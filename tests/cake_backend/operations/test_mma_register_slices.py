"""Products whose A is a slice, along K, of what a member holds in registers: the registers are used where they lie."""

from pathlib import Path

import numpy as np
from vertical import E4M3, agree, compiles, generated, passes, simulated

PARTS = """
@cake.schedule(target="sm_90a")
def parts(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    pool = lm.smem(65536)
    qa = pool.view(offset=0, shape=(128, 128), dtype=lm.e4m3, stage=2, swizzle="128b")
    qb = pool.view(offset=32768, shape=(64, 128), dtype=lm.e4m3, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 64)))
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 128)):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=(k * 128, t.m * 128), stage=s, barrier=full)
                qb.tma_load(B, coords=(k * 128, t.n * 64), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(128, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 128)):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                a = qa[s].ldmatrix(form="a")
                PRODUCTS
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(C, acc, coords=(t.n * 64, t.m * 128), clip=True)
"""
FIXED = """lm.mma(acc, a.cols(0, 96), qb[s].cols(0, 96), init=(k == 0))
                lm.mma(acc, a.cols(96, 32), qb[s].cols(96, 32))"""
LOOP = """for j in lm.static_range(2):
                    lm.mma(acc, a.cols(64 * j, 64), qb[s].cols(64 * j, 64), init=(k == 0 and j == 0))"""


def same_everywhere(text: str, folder: Path) -> str:
    """The simulator, the generated text and plain arithmetic agree; returns the text."""
    m, n, k = 192, 72, 320
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(E4M3) for s in ((m, k), (n, k)))
    tensors, scalars = {"A": a, "B": b, "C": np.zeros((m, n), np.float32)}, {"M": m, "N": n, "K": k}
    passes(text)
    got = simulated(text, tensors, scalars, ctas=2, every=True)
    agree(got, generated(text, tensors, scalars, folder, clusters=2))
    assert (got["C"] == a.astype(np.float64) @ b.astype(np.float64).T).all()
    return compiles(text)


def test_slices_between_two_instructions_are_not_copied(tmp_path: Path) -> None:
    text = same_everywhere(PARTS.replace("PRODUCTS", FIXED), tmp_path)
    assert "unpack_e4m3" not in text and "once" not in text


def test_a_slice_that_a_static_loop_chooses_is_not_copied(tmp_path: Path) -> None:
    text = same_everywhere(PARTS.replace("PRODUCTS", LOOP), tmp_path)
    assert "unpack_e4m3" not in text and "once" not in text
