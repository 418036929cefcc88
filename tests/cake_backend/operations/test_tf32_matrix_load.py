"""`view.ldmatrix` of tf32 operands: one element lies where two of 16 bits do, so that the matrix load deals them as mma.sync reads them."""

from pathlib import Path

import numpy as np
import pytest
from vertical import agree, codes, compiles, generated, passes, simulated

from cake_verify.gates import verify_text

GEMM = """
@cake.schedule(target="sm_80")
def gemm(lm, A: LM.gmem2d[LM.tf32, "M", "K"], B: LM.gmem2d[LM.tf32, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(K > 0 and K % 4 == 0)
    pool = lm.smem(64 * 128 + ROWS * 128)
    a = pool.view(offset=0, shape=(64, 32), dtype=lm.tf32, swizzle="128b")
    b = pool.view(offset=64 * 128, shape=(ROWS, 32), dtype=lm.tf32, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), lm.cdiv(N, ROWS)))
    with work:
        acc = lm.frag(shape=(64, ROWS), dtype=lm.f32, form="acc", WARPS)
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 32)):
                lm.sync(own)
                a.cp_async(A, coords=(k * 32, t.m * 64))
                b.cp_async(B, coords=(k * 32, t.n * ROWS))
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.sync(own)
                x = a.ldmatrix(form="a", like=acc)
                y = b.ldmatrix(form="b", like=acc)
                lm.mma(acc, x, y, init=(k == 0))
            lm.store(C, acc, coords=(t.n * ROWS, t.m * 64), clip=True)
"""


@pytest.mark.parametrize(("rows", "warps"), [(32, "warps=(2, 2)"), (24, "warps=(4, 1)")])
def test_a_product_of_tf32_reads_its_operands_by_matrix_loads(tmp_path: Path, rows: int, warps: str) -> None:
    text = GEMM.replace("ROWS", str(rows)).replace("WARPS", warps)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 10, s).astype(np.float32) for s in ((70, 76), (40, 76)))
    tensors, scalars = {"A": a, "B": b, "C": np.zeros((70, 40), np.float32)}, {"M": 70, "N": 40, "K": 76}
    passes(text)
    got = simulated(text, tensors, scalars, every=True)
    agree(got, generated(text, tensors, scalars, tmp_path))
    assert (got["C"] == a @ b.T).all()
    assert "ldmatrix_x4" in compiles(text)


def test_accumulators_and_transposed_operands_of_tf32_are_no_matrix_loads() -> None:
    text = GEMM.replace("ROWS", "32").replace("WARPS", "warps=(2, 2)")
    assert codes(text.replace('a.ldmatrix(form="a"', 'a.ldmatrix(form="acc"')) >= {"D023"}
    turned = text.replace("shape=(32, 32)", "shape=(32, 32)").replace('b.ldmatrix(form="b"', 'b.T.ldmatrix(form="b"')
    found = verify_text(turned).errors
    assert [e.code for e in found] == ["D023"] and "K-major" in found[0].help


def test_an_operand_of_f32_is_told_to_be_tf32_in_memory() -> None:
    text = GEMM.replace("ROWS", "32").replace("WARPS", "warps=(2, 2)")
    wide = text.replace('A: LM.gmem2d[LM.tf32', 'A: LM.gmem2d[LM.f32').replace('a = pool.view(offset=0, shape=(64, 32), dtype=lm.tf32', 'a = pool.view(offset=0, shape=(64, 32), dtype=lm.f32')
    found = verify_text(wide.replace('a.ldmatrix(form="a", like=acc)', 'lm.cast(a.load(form="a", like=acc), lm.tf32)')).errors
    assert [e.code for e in found] == ["D002"] and "declare the view" in found[0].help
