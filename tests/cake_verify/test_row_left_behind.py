"""D086 beside its page: windows that move on, and what only looks like one."""

import pytest

from cake_verify import verify_text
from cake_verify.rules.consistency.d086_row_left_behind import PAGE

GOOD = str(PAGE.passing)
STORES = [line for line in GOOD.splitlines(keepends=True) if "lm.store(STATE" in line]


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).diagnostics if d.severity == "error"]


@pytest.mark.parametrize("line", STORES)
def test_every_row_of_a_window_moves_on(line: str) -> None:
    assert codes(GOOD.replace(line, "")) == ["D086"]


def test_rows_that_move_the_other_way() -> None:
    back = GOOD.replace("STATE, b, coords=(t.d * 128, 0", "STATE, x, coords=(t.d * 128, 0").replace("STATE, c, coords=(t.d * 128, 1", "STATE, a, coords=(t.d * 128, 1")
    back = back.replace("STATE, x, coords=(t.d * 128, 2", "STATE, b, coords=(t.d * 128, 2")
    assert codes(back) == []
    assert codes(back.replace("            lm.store(STATE, x, coords=(t.d * 128, 0, t.b))\n", "")) == ["D086"]


def test_a_row_that_is_replaced_is_no_window_that_moves() -> None:
    assert codes(GOOD.replace(STORES[0], "").replace(STORES[1], "")) == []


def test_two_rows_may_be_kept() -> None:
    two = GOOD.replace("            c = lm.load(STATE, coords=(t.d * 128, 2, t.b), shape=(128,))\n", "").replace(" + c + x", " + x").replace(STORES[1], "").replace(STORES[2], "")
    assert codes(two) == []


def test_rows_that_change_places_are_no_window() -> None:
    swapped = GOOD.replace("STATE, c, coords=(t.d * 128, 1", "STATE, a, coords=(t.d * 128, 1").replace(STORES[2], "").replace("a + b + c + x", "a + b + c + x + x")
    assert codes(swapped) == []
