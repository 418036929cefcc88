"""Values that go round the CTAs of a cluster."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.schedule.q019_round_the_ring import PAGE

RING = PAGE.passing


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


@pytest.mark.parametrize(("rounds", "what"), [("PARTS", "comes back"), ("PARTS - 2", "never comes"), ("0, PARTS", "comes back")])
def test_one_round_more_and_one_less(rounds: str, what: str) -> None:
    text = RING.replace("lm.range(PARTS - 1)", f"lm.range({rounds})")
    (error,) = verify_text(text).errors
    assert error.code == "Q019" and what in error.message and codes(applied(text, error.fixes[0].edits)) == []


def test_other_ways_round_are_left_alone() -> None:
    more = RING.replace("lm.range(PARTS - 1)", "lm.range(PARTS)")
    assert codes(RING) == []
    assert codes(RING.replace("+ 1) % PARTS", "+ 3) % PARTS")) == [] and codes(more.replace("+ 1) % PARTS", "+ 3) % PARTS")) == ["Q019"]
    assert "Q019" not in codes(more.replace("+ 1) % PARTS", "+ 2) % PARTS"))  # comes to every other one only
    assert "Q019" not in codes(more.replace("total = mine * 1.0", "total = lm.frag(shape=(64, 64), dtype=lm.f32, form=\"vec\", init=0.0)"))  # the own part comes with the last round
