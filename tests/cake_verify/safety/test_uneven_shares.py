"""Work that blocks share by the step: a block goes on where another one stopped, and waits for what that one left."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text

STREAM_K = (Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus" / "streamk_ranges.py").read_text("utf-8")


def test_a_tile_that_several_blocks_share_is_walked() -> None:
    assert verify_text(STREAM_K).verdict == "pass"


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("lm.spin(FLAG, 2 * p + math.index, 1)", "pass"),
        ("lm.signal(FLAG, 2 * t.w + math.index, 1)", "lm.signal(FLAG, 2 * t.w, 1)"),
        ("lm.spin(FLAG, 2 * p + math.index, 1)", "lm.spin(FLAG, 2 * p + 1 - math.index, 1)"),
        ("lm.spin(FLAG, 2 * p + math.index, 1)", "lm.spin(FLAG, 2 * p + 2 + math.index, 1)"),
    ],
)
def test_what_a_block_takes_over_it_has_waited_for(good: str, bad: str) -> None:
    assert good in STREAM_K
    assert verify_text(STREAM_K.replace(f"                        {good}\n" if bad == "pass" else good, "" if bad == "pass" else bad)).verdict == "fail"


def test_a_flag_that_no_grid_comes_to_leaves_the_question_open() -> None:
    verdict = verify_text(STREAM_K.replace("if end < (tile + 1) * kt:", "if end < (tile + 2) * kt:"))
    assert verdict.verdict == "undecided" and any("comes to `lm.spin`" in d.message for d in verdict.diagnostics)
