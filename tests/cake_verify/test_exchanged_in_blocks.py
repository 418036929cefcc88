"""Coordinates in each other's place where a table or a sum of several says where a block lies."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify import verify_text


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("nsa_by_warps", "coords=(0, blk * BLK, t.h)", "coords=(blk * BLK, 0, t.h)"),
        ("moba_lists", "smem_k.tma_load(K, coords=(0, b * 128, t.h // GROUP)", "smem_k.tma_load(K, coords=(b * 128, 0, t.h // GROUP)"),
    ],
)
def test_a_block_of_a_table_along_an_axis_that_the_copy_covers(name: str, right: str, wrong: str) -> None:
    text = CASES[name].text()
    assert right in text
    errors = verdict_of(text.replace(right, wrong, 1), name)[0].errors
    assert errors[0].code == "D035"


TAPS = """
@cake.schedule(target="sm_90a")
def taps(lm, X: LM.gmem2d[LM.bf16, "M", "K9"], F: LM.gmem2d[LM.bf16, "KO", "K9"], Y: LM.gmem2d[LM.f32, "M", "KO"], M: LM.i32, KO: LM.i32, C: LM.i32, K9: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(C % 64 == 0 and K9 == 9 * C and C > 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), lm.cdiv(KO, 128)), names=("m", "n"))
    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0)
            for tap in lm.range(9):
                for c in lm.range(C // 64):
                    a = lm.load(X, coords=(tap * C + c * 64, t.m * 64), shape=(64, 64), form="a", clip=True)
                    b = lm.load(F, coords=(tap * C + c * 64, t.n * 128), shape=(128, 64), form="b", clip=True)
                    lm.mma(acc, a, b)
            lm.store(Y, acc, coords=(t.n * 128, t.m * 64), clip=True)
"""


def test_a_field_that_counts_tiles_of_the_axis_on_which_a_sum_stands() -> None:
    right = "lm.load(F, coords=(tap * C + c * 64, t.n * 128)"
    assert right in TAPS and verify_text(TAPS).verdict == "pass"
    errors = verify_text(TAPS.replace(right, "lm.load(F, coords=(t.n * 128, tap * C + c * 64)")).errors
    assert [e.code for e in errors] == ["D035"]
