"""A wait that leaves the group in flight whose slot is released next is one fault, and the edit is the wait's own number."""

from pathlib import Path

from cake_verify import verify_text

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"
WAIT = "lm.mma_wait(pending=0)\n                lm.arrive(empty, stage=s)"


def test_released_early_and_in_flight_at_the_end_are_told_once() -> None:
    text = (CORPUS / "gated_delta_state.py").read_text("utf-8")
    assert text.count(WAIT) == 1
    verdict = verify_text(text.replace(WAIT, WAIT.replace("pending=0", "pending=1")))
    (error,) = verdict.errors
    assert error.code == "S005" and any("leaves it in flight" in label for _, label in error.related)
    fix = error.fixes[0]
    assert fix.grade == "likely" and [e.text.strip() for e in fix.edits] == ["0"]


def test_a_loop_that_means_to_leave_one_in_flight_releases_the_slot_before() -> None:
    text = (CORPUS.parents[2] / "tests" / "examples" / "gemm_ws.py").read_text("utf-8")
    assert "stage=s.prev()" in text
    (error,) = verify_text(text.replace("stage=s.prev()", "stage=s", 1)).errors
    assert error.code == "S005" and "prev()" in error.fixes[0].edits[0].text
