"""Operands of products that are not the way round that is meant."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.schedule.q033_operand_turned import PAGE

GOOD = str(PAGE.passing)
INNER = 'lm.mma(z, q.ldmatrix(form="a"), k.ldmatrix(form="b"), init=True)'
STATE = 'lm.mma(y, q.ldmatrix(form="a"), st.ldmatrix(form="b"), init=True)'
OUTER = 'lm.mma(y, lm.cast(p, lm.bf16, form="a"), v.T.ldmatrix(form="b"))'


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_operands_that_were_exchanged_or_not_turned_are_told() -> None:
    assert codes(GOOD) == []
    assert codes(GOOD.replace(INNER, INNER.replace("q.", "x.").replace("k.", "q.").replace("x.", "k."))) == ["Q033"]
    assert codes(GOOD.replace(STATE, STATE.replace("q.", "x.").replace("st.", "q.").replace("x.", "st."))) == ["Q033"]


def test_an_operand_that_was_not_turned_is_told_whatever_numbers_its_rows_have() -> None:
    table = GOOD.replace(" T: LM.i32", ' AT: LM.gmem1d[LM.i32, "N"], T: LM.i32').replace("v.cp_async(V, coords=(0, t.c * 64))", "v.cp_async(V, coords=(0, lm.ld(AT, t.c) * 64))")
    table = table.replace("k.cp_async(K, coords=(0, t.c * 64))", "k.cp_async(K, coords=(0, lm.ld(AT, t.c) * 64))").replace("    lm.assume(T", "    lm.assume_values(AT, 0, N)\n    lm.assume(T")
    assert codes(table) == []
    assert codes(table.replace("v.T.ldmatrix", "v.ldmatrix")) == ["Q033"]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (INNER, INNER.replace("k.", "q.")),  # a tile with itself
        (STATE, STATE.replace("st.", "st.T.")),  # a square state may lie either way
        (OUTER, OUTER.replace("v.T", "k.T")),
    ],
)
def test_what_fits_passes(was: str, now: str) -> None:
    assert "Q033" not in codes(GOOD.replace(was, now))


SYMMETRIC = """
@cake.schedule(target=("sm_80", "sm_90a"))
def syr2k(lm, A: LM.gmem2d[LM.bf16, "N", 64], B: LM.gmem2d[LM.bf16, "N", 64], C: LM.gmem2d[LM.f32, "N", "N"], N: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(16384)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    b = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(N, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            a.cp_async(A, coords=(0, t.m * 64))
            b.cp_async(B, coords=(0, t.m * 64))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(own)
            c = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            lm.mma(c, a.ldmatrix(form="a"), b.ldmatrix(form="b"), init=True)
            lm.mma(c, b.ldmatrix(form="a"), a.ldmatrix(form="b"))
            lm.store(C, c, coords=(t.m * 64, t.m * 64), clip=True)
"""


def test_both_halves_of_a_symmetric_product_pass() -> None:
    assert "Q033" not in codes(SYMMETRIC)
    assert "Q033" not in codes(SYMMETRIC.replace('"N", 64]', "64, 64]"))


BLOCKS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def blocks(lm, X: LM.gmem2d[LM.bf16, "T", "D"], W: LM.gmem2d[LM.bf16, "D", 64], Y: LM.gmem2d[LM.f32, "T", "D"], Z: LM.gmem2d[LM.f32, "T", "D"], T: LM.i32, D: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(D % 64 == 0)
    pool = lm.smem(16384)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    w = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 64), D // 64), names=("m", "g"))
    with work:
        for t in lm.tiles(sched):
            x.cp_async(X, coords=(t.g * 64, t.m * 64))
            w.cp_async(W, coords=(0, t.g * 64))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(own)
            y = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            z = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            lm.mma(y, x.ldmatrix(form="a"), w.ldmatrix(form="b"), init=True)
            lm.mma(z, x.ldmatrix(form="a"), w.T.ldmatrix(form="b"), init=True)
            lm.store(Y, y, coords=(t.g * 64, t.m * 64), clip=True)
            lm.store(Z, z, coords=(t.g * 64, t.m * 64), clip=True)
"""


def test_blocks_on_a_diagonal_are_summed_over_a_stretch_of_an_axis() -> None:
    assert "Q033" not in codes(BLOCKS)
