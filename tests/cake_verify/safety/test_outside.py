"""Guarded accesses against declared extents: every tile, member and iteration counts, whichever block has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_verify.gates import verify_text
from cake_verify.proposals import applied

ROWS = '''
@cake.schedule(target="sm_90a")
def rows(lm, X: LM.gmem2d[LM.f32, "R", 128], Y: LM.gmem2d[LM.f32, "R", 128], R: LM.i32, *, MEMBERS=4, TILE=4, FIRST=0):
    lm.launch(grid="persistent")
    lm.assume(R > 0)
    work = lm.role(warps=range(0, MEMBERS), members=MEMBERS)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(R, TILE),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            row = t.m * TILE + work.index
            if row < R:
                lm.store(Y, lm.load(X, coords=(0, row), shape=(128,)), coords=(0, row))
'''
RMSNORM = (Path(__file__).resolve().parents[3] / "cake_kernels" / "rmsnorm" / "hopper_ring_warps.py").read_text("utf-8")


def leaves(relation: str, more: int, members: int) -> bool:
    """Whether some row that the condition lets through does not exist, by trying all small tensors."""
    compare = {"<": int.__lt__, "<=": int.__le__, "!=": int.__ne__}[relation]
    return any(
        compare(row, r + more) and not 0 <= row < r
        for r in range(1, 4 * members + 2) for m in range(-(-r // members)) for row in range(m * members, (m + 1) * members)
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["<", "<=", "!="]), st.integers(-2, 3), st.sampled_from([2, 4, 8]))
def test_an_access_is_refused_exactly_where_some_row_lies_outside(relation: str, more: int, members: int) -> None:
    text = ROWS.replace("row < R:", f"row {relation} R + {more}:").replace("MEMBERS=4, TILE=4", f"MEMBERS={members}, TILE={members}")
    found = [d.code for d in verify_text(text, suggest=False).errors]
    assert ("S033" in found) == leaves(relation, more, members), (relation, more, members, found)


def test_the_row_behind_the_last_one_is_told_with_the_relation_that_keeps_it_out() -> None:
    (error,) = verify_text(RMSNORM.replace("row < ROWS", "row <= ROWS")).errors
    assert error.code == "S033" and "which has 8 there, for ROWS = 8, t.m = 1, member 1" in error.message
    fixed = applied(RMSNORM.replace("row < ROWS", "row <= ROWS"), error.fixes[0].edits)
    assert fixed == RMSNORM and verify_text(RMSNORM).verdict == "pass"


@pytest.mark.parametrize("cond", ["row < R + 0 * lm.ld(N, 0)", "row < lm.ld(N, 0)"])
def test_a_condition_read_from_memory_decides_nothing(cond: str) -> None:
    text = ROWS.replace("R: LM.i32", "N: LM.gmem1d[LM.i32].const, R: LM.i32").replace("if row < R:", f"if {cond}:")
    assert not verify_text(text).errors


def test_what_stands_in_front_of_the_first_row_is_outside_too() -> None:
    text = ROWS.replace("            if row < R:\n", "            if row < R and row >= 0:\n").replace("lm.load(X, coords=(0, row)", "lm.load(X, coords=(0, row - 1)")
    (error,) = verify_text(text).errors
    assert error.code == "S033" and "in front of `X`" in error.message
    assert not verify_text(text.replace("row >= 0", "row >= 1")).errors


PAIRS = """
@cake.schedule(target="sm_90a")
def pairs(lm, FROM: LM.gmem1d[LM.i32, "TOK"].const, X: LM.gmem2d[LM.f32, "TOK", 128], Y: LM.gmem2d[LM.f32], TOK: LM.i32):
    lm.assume(TOK > 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(TOK, 8),), names=("p",))
    with work:
        for t in lm.tiles(sched):
            first = lm.cast(lm.ld(FROM, 8 * t.p), lm.f32)
            x = lm.load(X, coords=(0, 8 * t.p), shape=(1, 128))
            lm.store(Y, first + x, coords=(0, ROWS * t.p))
"""
ONE = PAIRS.replace("ROWS", "1")


def test_the_first_element_of_a_tile_exists_however_ragged_the_tile() -> None:
    assert verify_text(ONE).verdict == "pass"


@pytest.mark.parametrize(("rows", "divisor", "inside"), [(4, 4, True), (4, 2, False), (8, 4, False), (8, 8, True), (2, 4, True)])
def test_what_the_extent_is_a_multiple_of_says_how_much_the_last_tile_has(rows: int, divisor: int, inside: bool) -> None:
    text = PAIRS.replace("ROWS", str(rows)).replace("TOK > 0", f"TOK % {divisor} == 0").replace("shape=(1, 128)", f"shape=({rows}, 128)")
    assert [d.code for d in verify_text(text).errors] == ([] if inside else ["S033"])
