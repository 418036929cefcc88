"""Loops that start at their tile's first row: rows that a block stores one after the other, with its sums at the end."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import verdict_of
from cake_verify import verify_text

NAME = "layernorm_bwd_parts"
END = "hi = lm.min((t.p + 1) * ROWS_A_CTA, ROWS)"
LOOP = "for r in lm.range(t.p * ROWS_A_CTA, hi):"


def first(old: str, new: str) -> tuple[str, str]:
    text = CASES[NAME].text()
    assert old in text
    verdict, _ = verdict_of(text.replace(old, new), NAME)
    return verdict.errors[0].code, verdict.errors[0].message


def test_rows_from_the_first_of_a_tile_on_are_each_written_by_one_block() -> None:
    verdict, _ = verdict_of(CASES[NAME].text(), NAME)
    assert verdict.verdict == "pass"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (END, END.replace("ROWS_A_CTA,", "ROWS_A_CTA + 1,"), "stores to `dX` overlap: `t.p` steps by 8, the inner loops cover 9"),
        (END, END.replace("ROWS_A_CTA,", "ROWS_A_CTA - 1,"), "stores to `dX` leave gaps: `t.p` steps by 8, the inner loops cover 7"),
        (LOOP, LOOP.replace("t.p * ROWS_A_CTA", "t.p * ROWS_A_CTA + 1"), "stores to `dX` leave gaps: `t.p` steps by 8, the inner loops cover 7"),
        (LOOP, LOOP.replace("t.p * ROWS_A_CTA", "0"), "tiles along `p` all write the same place of `dX`"),
    ],
)
def test_a_block_that_goes_too_far_or_not_far_enough(old: str, new: str, said: str) -> None:
    assert first(old, new) == ("Q001", said)


TRIANGLE = """
@cake.schedule(target=("sm_80", "sm_90a"))
def pairs(lm, X: LM.gmem1d[LM.f32, "N"], Y: LM.gmem2d[LM.f32, "N", "N"].zeroed, N: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(N,), names=("i",))
    with work:
        for t in lm.tiles(sched):
            for j in lm.range(t.i, N):
                lm.store(Y, lm.ld(X, t.i) * lm.ld(X, j), coords=(j, t.i))
"""


def test_a_triangle_of_which_every_tile_has_a_row() -> None:
    assert verify_text(TRIANGLE).verdict == "pass"
