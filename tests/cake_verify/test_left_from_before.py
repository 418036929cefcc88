"""Copies out of shared memory, and the stores that were to fill it for the same tile."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.schedule.q035_left_from_before import PAGE

GOOD = str(PAGE.passing)
STORE = "                out.store(lm.cast(x, lm.bf16))"


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text, suggest=False).errors]


def test_an_arm_that_does_not_fill_what_is_copied_behind_it() -> None:
    assert codes(GOOD) == []
    assert codes(GOOD.replace(STORE, "                pass")) == ["Q035"]
    last = GOOD.replace("out.store(lm.cast(x * 0.5, lm.bf16))\n            else:\n" + STORE, "out.store(lm.cast(x * 0.5, lm.bf16))")
    assert codes(last) == ["Q035"]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("            if t.h < HQ:\n                out.store(lm.cast(x * 0.5, lm.bf16))\n            else:\n" + STORE, "            out.store(lm.cast(x, lm.bf16))"),
        (STORE, "                out.store(lm.cast(x * 2.0, lm.bf16))"),
    ],
)
def test_what_is_filled_for_every_tile_passes(was: str, now: str) -> None:
    assert codes(GOOD.replace(was, now)) == []
