"""Products that another one starts over, and roles that count the rounds of the last tile differently."""

from __future__ import annotations

from cake_verify.gates import verify_text
from cake_verify.proposals import applied
from cake_verify.rules.examples import LOOP, SYNC_MMA, edit

PEELED = edit(SYNC_MMA, ("        lm.store(C, acc", """        x = a.cols(0, 16).ldmatrix(form="a", like=acc)
        y = b.cols(16, 16).ldmatrix(form="b", like=acc)
        lm.mma(acc, x, y, init=INIT)
        lm.store(C, acc"""))  # fmt: skip


def test_a_product_behind_a_loop_that_starts_from_zero_loses_those_of_the_loop() -> None:
    bad = PEELED.replace("INIT", "True")
    error = next(e for e in verify_text(bad).errors if e.code == "S035")
    assert "starts from zero, and 2 of 2 products" in error.message
    assert applied(bad, error.fixes[0].edits) == PEELED.replace("INIT", "False")
    assert "S035" not in {e.code for e in verify_text(PEELED.replace("INIT", "False")).errors}


PART = "lm.range(lm.cdiv(lm.min(t.m * 64 + 64, K), 64))"
CAUSAL = LOOP.replace("lm.range(kt)", PART)


def test_roles_that_round_the_end_of_a_tile_differently_are_told_where_no_run_shows_it() -> None:
    assert CAUSAL.count(PART) == 2
    assert verify_text(CAUSAL, suggest=False).verdict == "pass"  # its loop is longer than a round only where two arguments are large
    head, tail = CAUSAL.rsplit(PART, 1)
    (error,) = verify_text(head + "lm.range(lm.min(t.m * 64 + 64, K) // 64)" + tail, suggest=False).errors
    assert error.code == "Q002" and "// 64" in error.message


def test_counts_that_agree_for_all_tiles_there_are_do_not_differ() -> None:
    """Beyond the last tile they would: no such tile is walked."""
    head, tail = CAUSAL.rsplit(PART, 1)
    even = (head + "lm.range(t.m + 1)" + tail).replace("    lm.assume(", "    lm.assume(M == K and K % 64 == 0)\n    lm.assume(", 1)
    assert "Q002" not in {e.code for e in verify_text(even, suggest=False).errors}
