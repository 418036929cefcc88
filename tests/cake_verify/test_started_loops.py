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


@pytest.mark.parametrize("line", ["                dg = dg + dy * xh\n", "                db = db + dy\n"])
def test_a_sum_that_is_stored_as_it_started_behind_the_rounds_that_should_have_made_it(line: str) -> None:
    code, message = first(line, "")
    assert code == "D040" and "never changes: wherever it is read it holds 0" in message


CLEARS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def clears(lm, X: LM.gmem2d[LM.f32, "R", "N"], S: LM.gmem1d[LM.f32, "R"], W: LM.gmem2d[LM.f32, "R", 128], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 128 == 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            for k in lm.range(N // 128):
                total = total + lm.load(X, coords=(k * 128, t.r), shape=(128,), form="vec", like=total)
            lm.store(S, lm.reduce(total, "add", axis=None), coords=(t.r,))
            zero = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            lm.store(W, zero, coords=(0, t.r))
"""


def test_zeros_that_clear_a_workspace_are_made_where_they_are_stored() -> None:
    assert verify_text(CLEARS).verdict == "pass"
    assert [e.code for e in verify_text(CLEARS.replace("            for k in lm.range(N // 128):\n                total = total + lm.load", "            for k in lm.range(N // 128):\n                other = lm.load")).errors] == ["D040"]


SPLITS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def combine(lm, P: LM.gmem2d[LM.f32, "RS", 128], L: LM.gmem1d[LM.f32, "RS"], O: LM.gmem2d[LM.f32, "R", 128], R: LM.i32, RS: LM.i32, *, SPLITS=4):
    lm.launch(grid="tiles")
    lm.assume(RS == R * SPLITS)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            top = -lm.inf
            for s in lm.static_range(SPLITS):
                top = lm.max(top, lm.ld(L, t.r * SPLITS + s))
            acc = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            total = 0.0
            for s in lm.static_range(SPLITS):
                w = lm.exp2(lm.ld(L, t.r * SPLITS + s) - top)
                total = total + w
                acc = acc + w * lm.load(P, coords=(0, t.r * SPLITS + s), shape=(128,), form="vec", like=acc)
            lm.store(O, acc * lm.rcp(total), coords=(0, t.r))
"""


def test_numbers_relative_to_a_maximum_that_nothing_took() -> None:
    assert verify_text(SPLITS).verdict == "pass"
    left = SPLITS.replace("            for s in lm.static_range(SPLITS):\n                top = lm.max(top, lm.ld(L, t.r * SPLITS + s))\n", "")
    assert [e.code for e in verify_text(left).errors] == ["D040"]
