"""``docs/targets.md`` is what the tables say today."""

from __future__ import annotations

from pathlib import Path

from cake_ir.targets.features import FEATURES
from cake_ir.targets.markdown import _MEANING, page


def test_the_page_is_up_to_date() -> None:
    written = (Path(__file__).parents[2] / "docs" / "targets.md").read_text(encoding="utf-8")
    assert written == page(), "run `python -m cake_ir.targets --markdown > docs/targets.md`"


def test_every_feature_says_what_needs_it() -> None:
    assert set(_MEANING) == set(FEATURES)
