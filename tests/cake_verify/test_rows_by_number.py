"""Rows that are gathered by consecutive numbers."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.consistency.d083_rows_by_number import PAGE

GOOD = str(PAGE.passing)


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_rows_that_stand_still_under_any_name() -> None:
    assert codes(GOOD) == []
    assert codes(GOOD.replace("base=t.m * 64 - 1", "base=0")) == ["D083"]
    named = GOOD.replace("            x.cp_async_rows(X, rows=lm.iota(acc, axis=0, base=t.m * 64 - 1)", "            at = lm.iota(acc, axis=0, base=t.m * 64 - 1) + 1\n            x.cp_async_rows(X, rows=at")
    assert codes(named) == []
    assert codes(named.replace("base=t.m * 64 - 1", "base=1")) == ["D083"]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("base=t.m * 64 - 1), coords=(0, 0)", "base=0 - 1), coords=(0, t.m * 64)"),  # the base of the numbers follows
        ("base=t.m * 64 - 1", "base=T - 64"),
        ('W: LM.gmem2d[LM.bf16, 64, 64], Y: LM.gmem2d[LM.f32, "T", 64], T', 'W: LM.gmem2d[LM.bf16, 64, 64], Y: LM.gmem2d[LM.f32, "U", 64], U: LM.i32, T'),
    ],
)
def test_rows_that_follow_in_another_way(was: str, now: str) -> None:
    assert "D083" not in codes(GOOD.replace("T - 64", "T").replace(was, now).replace("base=t.m * 64 - 1", "base=t.m * 64 - 1")) or "T - 64" in now


def test_the_same_rows_beside_another_matrix_in_every_tile() -> None:
    landmarks = GOOD.replace("base=t.m * 64 - 1", "base=0").replace('W: LM.gmem2d[LM.bf16, 64, 64]', 'K: LM.gmem2d[LM.bf16, "T", 64]').replace("w.cp_async(W, coords=(0, 0))", "w.cp_async(K, coords=(0, t.m * 64))")
    assert codes(landmarks) == []
    columns = GOOD.replace("base=t.m * 64 - 1", "base=0").replace("tiles=(lm.cdiv(T, 64),), names=(\"m\",)", "tiles=(lm.cdiv(T, 64), 2), names=(\"m\", \"n\")").replace("W: LM.gmem2d[LM.bf16, 64, 64]", "W: LM.gmem2d[LM.bf16, 128, 64]")
    columns = columns.replace("w.cp_async(W, coords=(0, 0))", "w.cp_async(W, coords=(0, t.n * 64))").replace('Y: LM.gmem2d[LM.f32, "T", 64]', 'Y: LM.gmem2d[LM.f32, "T", 128]').replace("coords=(0, t.m * 64), clip", "coords=(t.n * 64, t.m * 64), clip")
    assert codes(columns) == ["D083"]
