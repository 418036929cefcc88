"""Where tensor copies may start: what is shown to be off 16 bytes is refused, what the caller decides is not."""

from __future__ import annotations

import pytest

from cake_verify import verify_text
from cake_verify.rules.examples import LOOP, edit

LOAD = "a.tma_load(A, coords=(k * 64, t.m * 64)"


def said(coords: str) -> list[str]:
    return [d.message for d in verify_text(edit(LOOP, (LOAD, f"a.tma_load(A, coords={coords}"))).diagnostics if d.code == "H024"]


@pytest.mark.parametrize(
    ("coords", "words"),
    [
        ("(k * 64 + 4, t.m * 64)", "starts 8 bytes into a row of `A`"),
        ("(K * 4 + k * 60, t.m * 64)", "starts 120 bytes after the one before along `k` of `A`"),
        ("(t.m // 2 * K + k, t.m * 64)", "starts 2 bytes after the one before along `k` of `A`"),
        ("(t.m * 4 + k * 64, 0)", "starts 8 bytes after the one before along `t.m` of `A`"),
    ],
)
def test_a_start_that_is_off_in_some_tile_or_iteration_is_refused(coords: str, words: str) -> None:
    (message,) = said(coords)
    assert words in message


@pytest.mark.parametrize("coords", ["(k * 64, t.m * 64)", "(K + k * 64, t.m * 64)", "(k * K, 0)", "(-8, t.m * 64)"])
def test_a_start_that_an_argument_decides_or_that_lies_in_front_is_not(coords: str) -> None:
    assert said(coords) == []


@pytest.mark.parametrize(
    ("coords", "refused"),
    [("(at + t.m * 4, 0)", False), ("(at + k * 60, 0)", True), ("(at // 2 * 3 + k * 64, 0)", False), ("(lm.min(t.m, 3) * 4 + t.m * 4, 0)", False)],
    ids=["read anew in every tile", "read once for all k", "rounded", "not one number a tile"],
)  # fmt: skip
def test_a_number_that_is_read_may_make_up_for_a_step(coords: str, refused: bool) -> None:
    text = edit(
        LOOP, (LOAD, f"a.tma_load(A, coords={coords}"), ("K: LM.i32)", "K: LM.i32, OFFS: LM.gmem1d[LM.i32].const)"),
        ("    with load:\n        for t in lm.tiles(sched):\n", "    with load:\n        for t in lm.tiles(sched):\n            at = lm.ld(OFFS, t.m)\n"),
    )  # fmt: skip
    assert ("H024" in {d.code for d in verify_text(text).diagnostics}) is refused
