"""Masks by the distance of column and row: one diagonal for all tiles of a product, none for tiles that lie on one side of it."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.consistency.d037_one_diagonal import PAGE

GOOD = PAGE.passing
FIRST = "base=t.m * 64) <= row, acc"
LATER = "base=(t.m - j) * 64) <= row, acc"
UNMASKED = ("lm.where(lm.iota(acc, axis=1, base=(t.m - j) * 64) <= row, acc, -lm.inf)", "acc * 1.0")
OF_MEMORY = ("Y: LM.gmem1d", "W: LM.gmem1d[LM.i32].const, Y: LM.gmem1d")


def edited(*edits: tuple[str, str]) -> str:
    text = GOOD
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


REFUSED = {
    "one row more in the loop": ((LATER, LATER.replace("<= row", "<= row + 1")),),
    "one row less in the loop": ((LATER, LATER.replace("<= row", "< row")),),
    "one row more in the first tile": ((FIRST, FIRST.replace("<= row", "<= row + 1")),),
    "the first tile goes without": (("lm.assume(S > 0)", "lm.assume(S > 0 and S % 64 == 0)"), ("lm.where(lm.iota(acc, axis=1, base=t.m * 64) <= row, acc, -lm.inf)", "acc * 1.0"),),
}


@pytest.mark.parametrize("edits", REFUSED.values(), ids=list(REFUSED))
def test_tiles_of_one_product_share_a_diagonal(edits: tuple[tuple[str, str], ...]) -> None:
    errors = verify_text(edited(*edits)).errors
    assert [e.code for e in errors] == ["D037"]


def test_a_diagonal_off_by_a_number_is_mended_by_leaving_it_out() -> None:
    bad = edited((LATER, LATER.replace("<= row", "<= row + 1")))
    (error,) = verify_text(bad).errors
    assert verify_text(applied(bad, error.fixes[0].edits)).verdict == "pass"


ACCEPTED = {
    "tiles left of the diagonal go without": (UNMASKED,),
    "columns less than the row after": ((FIRST, FIRST.replace("<= row", "< row + 1")), (LATER, LATER.replace("<= row", "< row + 1"))),
    "rows compared with columns": (("lm.iota(acc, axis=1, base=(t.m - j) * 64) <= row", "row >= lm.iota(acc, axis=1, base=(t.m - j) * 64)"),),
    "a window read by tile": (OF_MEMORY, (FIRST, FIRST.replace("<= row", "<= row + lm.ld(W, t.m)")), (LATER, LATER.replace("<= row", "<= row + lm.ld(W, t.m)"))),
    "one window for all": (OF_MEMORY, (FIRST, FIRST.replace("<= row", "<= row + lm.ld(W, 0)")), (LATER, LATER.replace("<= row", "<= row + lm.ld(W, 0)"))),
    "a prefix that all rows see": (("base=t.m * 64) <= row, acc", "base=t.m * 64) < 64 + t.m * 64, acc"),
                                   (LATER, LATER.replace("<= row", "< 64 + t.m * 64"))),
}  # fmt: skip


@pytest.mark.parametrize("edits", ACCEPTED.values(), ids=list(ACCEPTED))
def test_masks_that_agree_pass(edits: tuple[tuple[str, str], ...]) -> None:
    verdict = verify_text(edited(*edits))
    assert verdict.verdict == "pass", [d.to_json() for d in verdict.diagnostics]
