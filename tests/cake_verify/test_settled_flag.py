"""Flags whose values a branch does not tell apart."""

import pytest

from cake_verify import verify_text
from cake_verify.rules.schedule.q030_settled_flag import PAGE

GOOD = str(PAGE.passing)


def found(old: str, new: str) -> list[tuple[str, str, list[str]]]:
    assert old in GOOD
    return [(d.code, d.message, [e.text for f in d.fixes for e in f.edits]) for d in verify_text(GOOD.replace(old, new)).diagnostics if d.severity == "error"]


def test_a_test_that_always_holds_is_named_with_what_the_flag_is_set_to() -> None:
    [(code, message, fixes)] = found("looking > 0", "looking >= 0")
    assert code == "Q030" and message == "`looking >= 0` always holds: `looking` is 0 or 1, wherever it is set" and fixes == ["looking >= 1"]


def test_a_flag_that_an_arm_of_a_choice_sets_is_one_too() -> None:
    text = ("                    if lm.ld(X, i) > limit:\n                        looking = 0\n", "                    looking = lm.where(lm.ld(X, i) > limit, 0, looking)\n                    if looking < 0:\n")
    [(code, message, _)] = found(*text)
    assert code == "Q030" and "`looking < 0` never holds" in message


@pytest.mark.parametrize("condition", ["looking == 1", "looking != 0", "0 < looking", "looking >= 1", "not looking <= 0"])
def test_what_tells_the_values_apart_passes(condition: str) -> None:
    assert found("looking > 0", condition) == []


def test_a_count_is_no_flag() -> None:
    assert found("                        looking = 0\n", "                        looking = looking + 1\n") == []
