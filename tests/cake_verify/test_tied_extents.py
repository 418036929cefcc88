"""Tiles that start late along an extent that follows from another argument."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify import verify_text

PACKED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def packed(lm, W: LM.gmem2d[LM.f32, "N", "K2"], Y: LM.gmem1d[LM.f32, "N"], N: LM.i32, K: LM.i32, K2: LM.i32, KG: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(K % 256 == 0 and K2 == K // 2 and KG == K // 256 and K > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(N,), names=("n",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            for k in lm.range(KG):
                total = total + lm.load(W, coords=(k * 128, t.n), shape=(128,), form="vec", like=total, clip=True)
            lm.store(Y, lm.reduce(total, "add", axis=None), coords=(t.n,))
"""


def test_an_extent_that_is_a_part_of_what_counts_the_rounds() -> None:
    assert verify_text(PACKED).verdict == "pass"


@pytest.mark.parametrize("late", ["(k + 1) * 128", "k * 128 + 128"])
def test_the_first_tile_is_left_out(late: str) -> None:
    assert [e.code for e in verify_text(PACKED.replace("k * 128", late)).errors] == ["Q014"]


def test_an_extent_that_nothing_ties_to_the_rounds_is_anybodys() -> None:
    loose = PACKED.replace("K2 == K // 2 and ", "K2 % 128 == 0 and ")
    assert "Q014" not in [e.code for e in verify_text(loose.replace("k * 128", "(k + 1) * 128")).errors]


def test_blocks_of_a_table_whose_number_an_argument_has() -> None:
    text, mask = CASES["moba_lists"].text(), "z = lm.where(b * 128 + lm.iota(scores, 1) <= row, scores * scale_log2, -lm.inf)"
    assert mask in text
    assert [e.code for e in verdict_of(text.replace(mask, "z = scores * scale_log2"), "moba_lists")[0].errors] == ["D010"]
