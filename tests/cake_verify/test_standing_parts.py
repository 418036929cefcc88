"""Loops over the parts that members or ranks have left in shared memory."""

from __future__ import annotations

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.consistency.d053_standing_part import PAGE

MERGED = PAGE.passing


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


def test_a_part_that_stands_still_beside_one_that_moves() -> None:
    assert codes(MERGED) == []
    (error,) = verify_text(PAGE.failing).errors
    assert error.code == "D053" and error.facts["view"] == "gates" and codes(applied(PAGE.failing, error.fixes[0].edits)) == []
    named = PAGE.failing.replace("                    g = gates.rows(0, 1)", "                    first = 0\n                    g = gates.rows(first, 1)")
    assert codes(named) == ["D053"]


def test_what_is_read_in_front_of_the_loop_is_one_part_for_all() -> None:
    old = "                for j in lm.static_range(4):\n                    g = gates.rows(j, 1).load(form=\"vec\", like=sums)\n                    sums"
    assert old in MERGED
    hoisted = MERGED.replace(old, "                g = gates.rows(0, 1).load(form=\"vec\", like=sums)\n                for j in lm.static_range(4):\n                    sums")
    assert codes(hoisted) == []


def test_a_part_that_nobody_writes_side_by_side_and_other_numbers_of_rounds_are_left_alone() -> None:
    whole = PAGE.failing.replace("gates.rows(work.index, 1).store(lm.load(G, coords=(64 * work.index, t.r), shape=(64,)))", "gates.rows(0, 1).store(lm.load(G, coords=(64 * work.index, t.r), shape=(64,)))")
    assert "D053" not in codes(whole)
    fewer = PAGE.failing.replace("lm.static_range(4):\n                    g = gates.rows(0", "lm.static_range(3):\n                    g = gates.rows(0")
    assert "D053" not in codes(fewer)


def test_elements_of_a_view_are_parts_too() -> None:
    text = MERGED.replace("parts.rows(j, 1).load(form=\"vec\", like=sums) * lm.exp(g - most)", "g * (parts.ld(64 * j) - gates.ld(64 * j))")
    assert "D053" not in codes(text) and codes(text.replace("gates.ld(64 * j)", "gates.ld(0)")) == ["D053"]
