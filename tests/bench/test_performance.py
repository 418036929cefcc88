"""The page of measured speeds says what the recorded results say."""

from pathlib import Path

from bench.performance import page

ROOT = Path(__file__).parents[2]


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "performance.md").read_text() == page(), "run `python -m bench.performance > docs/performance.md`"
