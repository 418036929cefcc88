"""Bounds where memory has a say: guards beside conditions on what is read, grouped tiles, rows stored one by one, places of lists."""

from __future__ import annotations

from typing import Any

import pytest

from cake_verify import verify_text
from cake_verify.proposals import applied

PICK = """
@cake.schedule(target="sm_80")
def pick(lm, X: LM.gmem3d[LM.f32, "N", "R", 128], INDEX: LM.gmem1d[LM.i32, "T"], Y: LM.gmem3d[LM.f32, "T", "R", 128], T: LM.i32, N: LM.i32, R: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="static", tiles=(T, lm.cdiv(R, 4)), names=("t", "r"))
    with work:
        for t in lm.tiles(sched):
            r = t.r * 4 + work.index
            i = lm.ld(INDEX, t.t)
            if r < R and i >= 0 and i < N:
                lm.store(Y, lm.load(X, coords=(0, r, i), shape=(128,)), coords=(0, r, t.t))
"""
CONV = """
@cake.schedule(target="sm_80")
def conv(lm, X: LM.gmem2d[LM.f32, "T", 128], CU: LM.gmem1d[LM.i32, "NS1"], Y: LM.gmem2d[LM.f32, "T", 128], T: LM.i32, NS1: LM.i32):
    lm.launch(grid="persistent")
    lm.assume_values(CU, 0, T + 1, sorted=True)
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grouped", tiles=(1,), offsets=CU, block=16)
    with work:
        for t in lm.tiles(sched):
            last = lm.frag(shape=(128,), dtype=lm.f32, form="vec", init=0.0)
            if t.m > 0:
                last = lm.load(X, coords=(0, t.row0 - 1), shape=(128,))
            for r in lm.range(t.rows):
                x = lm.load(X, coords=(0, t.row0 + r), shape=(128,))
                lm.store(Y, x + last, coords=(0, t.row0 + r))
                last = x
"""
TOP = """
@cake.schedule(target="sm_80")
def top(lm, X: LM.gmem2d[LM.f32, "T", 64], W: LM.gmem2d[LM.f32, "T", 4], T: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(T, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 64), shape=(64, 64), form="acc", clip=True)
            best = lm.finish(lm.topk(x, axis=1, base=0, into=lm.topk_list(x, 4, largest=True)))
            row = lm.iota(x, 0, base=t.m * 64)
            for k in lm.static_range(4):
                lm.store(W, best[k][0], coords=(k, row), clip=True)
"""


def errors(text: str) -> list[Any]:
    return [d for d in verify_text(text).shown() if d.severity == "error"]


@pytest.mark.parametrize("text", [PICK, CONV, TOP, PICK.replace("r < R and i >= 0 and i < N", "i >= 0 and i < N and r < R")])
def test_the_good_ones_pass(text: str) -> None:
    assert verify_text(text).verdict == "pass"


@pytest.mark.parametrize(("old", "new"), [("r < R and", "r <= R and"), ("r < R and", "r < R + 1 and"), ("r < R and ", "")])
def test_a_guard_beside_one_on_memory_is_held_against_the_extents_once(old: str, new: str) -> None:
    (found,) = errors(PICK.replace(old, new))
    assert found.code == "S033" and any("too" in note for _, note in found.related)
    if new == "r <= R and":
        assert verify_text(applied(PICK.replace(old, new), found.fixes[0].edits)).verdict == "pass"


def test_a_guard_on_memory_that_may_bound_the_coordinate_is_believed() -> None:
    assert verify_text(PICK.replace("r < R and i >= 0 and i < N", "i >= 0 and i < N and r < i")).verdict == "pass"


@pytest.mark.parametrize(("old", "new"), [("t.m > 0", "t.m >= 0"), ("            if t.m > 0:\n                last", "            last")])
def test_a_row_in_front_of_the_first_group_is_outside(old: str, new: str) -> None:
    (found,) = errors(CONV.replace(old, new))
    assert found.code == "S033" and "in front of `X`" in found.message


@pytest.mark.parametrize("rows", ["t.rows + 1", "t.rows - 1", "16"])
def test_rows_stored_one_by_one_are_the_tiles(rows: str) -> None:
    assert {d.code for d in errors(CONV.replace("lm.range(t.rows)", f"lm.range({rows})"))} & {"Q001", "S033"}


def test_a_list_has_no_place_behind_its_last() -> None:
    (found,) = errors(TOP.replace("static_range(4)", "static_range(5)"))
    assert found.code == "D038" and "place 4 of a list of 4" in found.message


PLACED = """
@cake.schedule(target="sm_80")
def placed(lm, X: LM.gmem3d[LM.f32, "T", "H", 16], CU: LM.gmem1d[LM.i32, "NS1"], Y: LM.gmem3d[LM.f32, "T", "H", 16], T: LM.i32, H: LM.i32, NS1: LM.i32):
    lm.launch(grid="persistent")
    lm.assume_values(CU, 0, T + 1, sorted=True)
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grouped", tiles=(H,), offsets=CU, block=32)
    with work:
        for t in lm.tiles(sched):
            o = lm.frag(shape=(32, 16), dtype=lm.f32, form="acc", init=1.0)
            row = lm.iota(o, 0)
            x = lm.load(X, coords=(0, t.n, t.row0 + row), shape=(32, 16), form="acc", mask=row < t.rows)
            lm.store(Y, o + x, coords=(0, t.n, t.row0 + row), mask=MASK)
"""


def test_rows_that_a_row_vector_places_are_the_tiles() -> None:
    assert verify_text(PLACED.replace("MASK", "row < t.rows")).verdict == "pass"
    for mask in ("row < t.rows + 1", "row <= t.rows", "row < t.rows - 1"):
        assert [d.code for d in errors(PLACED.replace("MASK", mask))] == ["Q001"]


def test_errors_on_one_line_are_told_once() -> None:
    text = CONV.replace("lm.range(t.rows)", "lm.range(t.rows + 1)").replace("t.m > 0", "t.m >= 0")
    lines = [d.span.line for d in errors(text)]
    assert len(lines) == len(set(lines))
