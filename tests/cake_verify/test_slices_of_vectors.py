"""Parts of 1-D views: they have columns only, and the edit says so."""

from __future__ import annotations

from bench.verify.cases import CASES
from cake_verify import verify_text
from cake_verify.proposals import applied


def test_rows_of_a_vector_are_mended_by_the_edit() -> None:
    text = CASES["decode_by_warps"].text()
    wrong = text.replace("smem_m.cols(HQ * work.index, HQ).store(m)", "smem_m.rows(HQ * work.index, HQ).store(m)")
    assert wrong != text
    (error,) = verify_text(wrong).errors
    assert error.code == "D021" and error.fixes[0].grade == "certain"
    assert applied(wrong, error.fixes[0].edits) == text
