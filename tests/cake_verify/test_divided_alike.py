"""Branches that divide tiles among kinds of work."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.schedule.q034_divided_alike import PAGE

GOOD = str(PAGE.passing)
FIRST = "            if t.h < HQ:\n                y = y * lm.rsqrt"
SECOND = "            if t.h < HQ:\n                lm.store(Q"


def errors(text: str) -> list[tuple[str, int]]:
    return [(d.code, d.span.line) for d in verify_text(text, suggest=False).errors]


@pytest.mark.parametrize("guard", ["t.h < HQ + 1", "t.h <= HQ", "HQ >= t.h", "t.h - 1 < HQ"])
def test_a_line_one_tile_from_the_other_is_told_where_it_is(guard: str) -> None:
    line = next(i for i, text in enumerate(GOOD.split("\n"), 1) if text.strip() == "if t.h < HQ:")
    assert errors(GOOD.replace(FIRST, FIRST.replace("t.h < HQ", guard))) == [("Q034", line)]


@pytest.mark.parametrize("guard", ["HQ > t.h", "t.h <= HQ - 1", "t.h < HQ - 2", "t.h < HQ - 1", "t.h * 2 < HQ + 1", "t.r < HQ + 1"])
def test_the_same_line_and_other_lines_pass(guard: str) -> None:
    assert errors(GOOD.replace(FIRST, FIRST.replace("t.h < HQ", guard))) == []


def test_a_line_that_both_draw_is_meant() -> None:
    both = GOOD.replace(FIRST, FIRST.replace("t.h < HQ", "t.h < HQ + 1"))
    three = both.replace(SECOND, """            if t.h < HQ + 1:
                y = y + 1.0
            else:
                y = y + 2.0
""" + SECOND)  # fmt: skip
    assert [code for code, _ in errors(three)] == ["Q034"]
    kinds = both.replace("            else:\n                lm.store(V", "            elif t.h < HQ + 1:\n                lm.store(V, y * 2.0, coords=((t.h - HQ) * 128, t.r))\n            else:\n                lm.store(V")
    assert errors(kinds) == []


def test_looking_ahead_has_one_arm() -> None:
    one = GOOD.replace(FIRST, FIRST.replace("t.h < HQ", "t.h + 1 < HQ")).replace("            else:\n                y = y * 0.5\n", "")
    assert errors(one) == []


def test_single_tiles_that_the_scheduler_counts() -> None:
    """One key and one value head, which a store packs into one tensor: what queries and keys have in common ends one tile further."""
    both = GOOD.replace(FIRST, FIRST.replace("t.h < HQ", "t.h < HQ + 1"))
    packed = both.replace("tiles=(HQ + HV, R)", "tiles=(HQ + 2, R)").replace(', "VW"]', ", 256]").replace("VW == HV * 128 and W == QW + VW and HQ > 0 and HV > 0", "W == QW + 256 and HQ > 0").replace("VW: LM.i32, ", "").replace(", HV: LM.i32", "")
    assert errors(packed) == []
