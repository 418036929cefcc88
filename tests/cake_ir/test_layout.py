"""The map from view elements to bytes: a permutation, panel by panel, with the published swizzle patterns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_ir.layout import (
    SWIZZLES,
    LayoutError,
    ViewLayout,
    atoms,
    bank_conflicts,
    bit_offset,
    ldmatrix_conflicts,
    linear_offset,
    merged,
    offset,
    offset_table,
    overlap,
    panels,
    stage_stride,
    total_bytes,
    view_bytes,
    view_problem,
)  # fmt: skip


@st.composite
def views(draw: st.DrawFn) -> ViewLayout:
    swizzle = draw(st.sampled_from([None, "128b", "64b", "32b"]))
    bits = draw(st.sampled_from([4, 8, 16, 32]))
    rows = draw(st.sampled_from([1, 8, 16, 24]))
    if swizzle is None:
        cols = draw(st.integers(1, 12)) * 16
    else:
        cols = SWIZZLES[swizzle].span * 8 // bits * draw(st.integers(1, 3))
    pattern = SWIZZLES[swizzle].pattern if swizzle else 16
    stages = draw(st.integers(1, 3))
    base = ViewLayout(pattern * draw(st.integers(0, 3)), rows, cols, bits, stages, swizzle)
    pad = -(-view_bytes(base) // pattern) * pattern + pattern * draw(st.integers(0, 1))
    return replace(base, stage_bytes=pad)


@given(views())
def test_elements_of_one_stage_fill_its_bytes_exactly_once(view: ViewLayout) -> None:
    assert view_problem(view) is None
    stage = view.stages - 1
    bits = sorted(bit_offset(view, stage, r, c) for r in range(view.rows) for c in range(view.cols))
    start = (view.offset + stage * stage_stride(view)) * 8
    assert bits == list(range(start, start + view_bytes(view) * 8, view.elem_bits))


@given(views(), st.data())
def test_table_and_function_agree(view: ViewLayout, data: st.DataObject) -> None:
    stage = data.draw(st.integers(0, view.stages - 1))
    table = offset_table(view, stage)
    one = offset if view.elem_bits >= 8 else bit_offset
    row, col = data.draw(st.integers(0, view.rows - 1)), data.draw(st.integers(0, view.cols - 1))
    assert table[row * view.cols + col] == one(view, stage, row, col)
    assert len(table) == view.rows * view.cols


@given(views(), st.data())
def test_atoms_are_exactly_the_bytes_of_the_rectangle(view: ViewLayout, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, view.rows - 1))
    rows = data.draw(st.integers(1, view.rows - row))
    col = data.draw(st.integers(0, view.cols - 1))
    cols = data.draw(st.integers(1, view.cols - col))
    bits = [bit_offset(view, 0, r, c) for r in range(row, row + rows) for c in range(col, col + cols)]
    want = {b for at in bits for b in range(at // 8, (at + view.elem_bits - 1) // 8 + 1)}
    got = atoms(view, 0, row, rows, col, cols)
    assert {b for lo, hi in got for b in range(lo, hi)} == want
    assert all(a[1] < b[0] for a, b in pairwise(got))


def test_whole_panels_are_one_range_each() -> None:
    q = ViewLayout(0, 128, 128, 16, 1, "128b")
    assert atoms(q, 0, 64, 64, 0, 128) == ((8192, 16384), (24576, 32768))
    assert atoms(q, 0, 0, 128, 0, 128) == ((0, 32768),)
    assert [(p.col, p.offset) for p in panels(q)] == [(0, 0), (64, 16384)]


def test_rectangles_that_share_no_element_share_no_byte() -> None:
    v = ViewLayout(0, 64, 64, 16, 2, "128b")
    assert overlap(atoms(v, 0, 0, 64, 0, 32), atoms(v, 0, 0, 64, 32, 32)) is None
    assert overlap(atoms(v, 0, 0, 32, 0, 64), atoms(v, 0, 31, 1, 60, 1)) is not None
    assert overlap(atoms(v, 0, 0, 64, 0, 64), atoms(v, 1, 0, 64, 0, 64)) is None


def test_a_rectangle_outside_the_view_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"rows 60\.\.68"):
        atoms(ViewLayout(0, 64, 64, 16), 0, 60, 8, 0, 64)


@pytest.mark.parametrize(("name", "bits"), [("128b", (7, 8, 9)), ("64b", (7, 8)), ("32b", (7,))])
def test_swizzle_xors_the_chunk_bits_with_the_bits_three_above(name: str, bits: tuple[int, ...]) -> None:
    mode = SWIZZLES[name]
    for bit in range(14):
        flipped = mode.apply(1 << bit) ^ (1 << bit)
        assert flipped == (1 << bit - 3 if bit in bits else 0)
    assert all(mode.apply(mode.apply(a)) == a for a in range(0, 4096, 16))


def test_128b_rows_rotate_their_chunks_by_the_row() -> None:
    v = ViewLayout(0, 16, 64, 16, 1, "128b")
    for row in range(16):
        for chunk in range(8):
            assert offset(v, 0, row, 8 * chunk) == row * 128 + 16 * (chunk ^ (row & 7))


def test_linear_offset_is_where_a_descriptor_points() -> None:
    v = ViewLayout(1024, 64, 128, 16, 2, "128b")
    assert linear_offset(v, 1, 8, 64 + 16) == 1024 + 16384 + 8192 + 1024 + 32


def test_one_dimensional_views_are_one_row() -> None:
    v = ViewLayout(512, 1, 128, 32, 2)
    assert (view_bytes(v), stage_stride(v), total_bytes(v)) == (512, 512, 1024)
    assert offset(v, 1, 0, 3) == 512 + 512 + 12


def test_stage_padding_moves_the_next_stage_only() -> None:
    v = ViewLayout(0, 4, 64, 16, 3, "128b", 1024)
    assert view_problem(v) is None
    assert offset(v, 2, 0, 0) == 2048 and total_bytes(v) == 2048 + 512


@pytest.mark.parametrize(
    ("view", "says"),
    [
        (ViewLayout(0, 64, 96, 16, 1, "128b"), 'swizzle "64b" fits'),
        (ViewLayout(512, 64, 64, 16, 1, "128b"), "the next is 1024"),
        (ViewLayout(0, 4, 64, 16, 2, "128b"), "stage_bytes=1024 pads them"),
        (ViewLayout(0, 8, 64, 16, 2, "128b", 512), "smaller than the 1024 bytes"),
        (ViewLayout(0, 8, 64, 16, 1, "256b"), "is not one of 128b, 64b, 32b"),
        (ViewLayout(2, 8, 64, 32), "4-byte element"),
        (ViewLayout(0, 8, 3, 4), "ends inside a byte"),
    ],
)
def test_impossible_views_say_what_would_fit(view: ViewLayout, says: str) -> None:
    assert says in (view_problem(view) or "")


def test_swizzled_matrix_rows_are_conflict_free_and_plain_ones_are_not() -> None:
    assert ldmatrix_conflicts(ViewLayout(0, 64, 64, 16, 1, "128b")) == 1
    assert ldmatrix_conflicts(ViewLayout(0, 64, 32, 16, 1, "64b")) == 1
    assert ldmatrix_conflicts(ViewLayout(0, 64, 64, 16)) == 8
    assert ldmatrix_conflicts(ViewLayout(0, 64, 72, 16)) == 1  # a pitch of 144 bytes: odd in 16-byte units


def test_bank_conflicts_count_distinct_words_a_bank_within_a_phase() -> None:
    assert bank_conflicts([4 * i for i in range(32)], 4) == 1
    assert bank_conflicts([128 * i for i in range(32)], 4) == 32
    assert bank_conflicts([0] * 32, 4) == 1
    assert bank_conflicts([8 * i for i in range(32)], 8) == 1
    assert bank_conflicts([16 * i for i in range(32)], 16) == 1
    assert bank_conflicts([256 * (i % 8) for i in range(32)], 16) == 8


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10)), max_size=8), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10)), max_size=8))
def test_overlap_finds_a_common_byte_exactly_when_there_is_one(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    left, right = merged([(lo, lo + n) for lo, n in a]), merged([(lo, lo + n) for lo, n in b])
    common = {x for lo, hi in left for x in range(lo, hi)} & {x for lo, hi in right for x in range(lo, hi)}
    hit = overlap(left, right)
    assert (hit is None) == (not common)
    if hit:
        assert hit[0] == min(common)
