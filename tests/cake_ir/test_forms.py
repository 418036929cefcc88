"""Ownership maps: every element owned, the published fragment layouts, and maps that agree with their inverses."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_ir.forms import Fragment, element, element_table, fragment_problem, matrix_lanes, owners, registers, registers_32, warp_rectangles

SPLITS = [(4, None), (8, None), (1, None), (4, (2, 2)), (8, (2, 4)), (8, (4, 2)), (2, (1, 2)), (8, (8, 1))]


@st.composite
def fragments(draw: st.DrawFn) -> Fragment:
    warps, split = draw(st.sampled_from(SPLITS))
    wm, wn = split or (warps, 1)
    form = draw(st.sampled_from(["acc", "a", "b", "rows", "vec", "rowvec", "colvec", "scalar"]))
    bits = draw(st.sampled_from([8, 16, 32]))
    m, n = 16 * wm * draw(st.integers(1, 2)), 8 * wn * draw(st.integers(1, 3))
    k = 8 * (32 // bits) * draw(st.integers(1, 2))
    quad = draw(st.booleans())
    if form == "acc":
        return Fragment("acc", m, n, bits, warps, split)
    if form == "a":
        return Fragment("a", m, k, bits, warps, split, quad=quad)
    if form == "b":
        return Fragment("b", n, k, bits, warps, split, quad=quad)
    if form == "rows":
        return Fragment("rows", 32 * warps, n, bits, warps)
    if form == "vec":
        chunk = draw(st.sampled_from([1, 4, 8]))
        return Fragment("vec", draw(st.integers(1, 5)), 8 * draw(st.integers(1, 70)), bits, warps, chunk=chunk)
    if form == "rowvec":
        return draw(st.sampled_from([Fragment("rowvec", m, 1, bits, warps, split), Fragment("rowvec", 32 * warps, 1, bits, warps, parent="rows")]))
    if form == "colvec":
        return draw(st.sampled_from([Fragment("colvec", 1, n, bits, warps, split), Fragment("colvec", 1, n, bits, warps, parent="rows")]))
    return Fragment("scalar", 1, 1, bits, warps)


@given(fragments())
def test_every_element_is_owned_equally_often_and_the_table_is_the_map(f: Fragment) -> None:
    assert fragment_problem(f) is None
    table, count = element_table(f), registers(f)
    assert table.shape == (f.warps, 32, count)
    times: dict[tuple[int, int], int] = {}
    for i, (warp, lane, register) in enumerate(product(range(f.warps), range(32), range(count))):
        at = element(f, warp, lane, register)
        assert (table.rows[i], table.cols[i]) == (at or (-1, -1))
        if at:
            times[at] = times.get(at, 0) + 1
    assert set(times) == set(product(range(f.rows), range(f.cols)))
    assert len(set(times.values())) == 1


@given(fragments(), st.data())
def test_owners_is_the_inverse_of_element(f: Fragment, data: st.DataObject) -> None:
    row, col = data.draw(st.integers(0, f.rows - 1)), data.draw(st.integers(0, f.cols - 1))
    who = owners(f, row, col)
    assert who and all(element(f, *w) == (row, col) for w in who)


@given(fragments())
def test_warp_rectangles_are_disjoint_and_hold_exactly_what_the_warp_owns(f: Fragment) -> None:
    for warp in range(f.warps):
        cells = [at for r, h, c, w in warp_rectangles(f, warp) for at in product(range(r, r + h), range(c, c + w))]
        assert len(cells) == len(set(cells))
        mine = {element(f, warp, lane, i) for lane in range(32) for i in range(registers(f))} - {None}
        assert set(cells) == mine


def test_accumulator_rows_and_columns_are_those_of_the_reference_code() -> None:
    f = Fragment("acc", 128, 256, 32)
    for warp, lane, i in product(range(4), range(32), range(256)):
        block, j = divmod(i, 128)
        want = (64 * block + 16 * warp + 8 * (j >> 1 & 1) + lane // 4, 8 * (j >> 2) + 2 * (lane % 4) + (j & 1))
        assert element(f, warp, lane, i) == want


def test_split_tiles_are_contiguous_and_the_first_index_runs_along_the_rows() -> None:
    f = Fragment("acc", 128, 128, 32, 8, (2, 4))
    assert [warp_rectangles(f, w) for w in range(3)] == [((0, 64, 0, 32),), ((64, 64, 0, 32),), ((0, 64, 32, 32),)]


def test_a_operand_registers_are_the_four_quarters_of_a_tile() -> None:
    f = Fragment("a", 16, 16, 16, 1)
    assert [element(f, 0, 5, i) for i in range(8)] == [(1, 2), (1, 3), (9, 2), (9, 3), (1, 10), (1, 11), (9, 10), (9, 11)]
    bytes_ = Fragment("a", 16, 32, 8, 1)
    assert [element(bytes_, 0, 5, i) for i in (0, 3, 4, 8, 12)] == [(1, 4), (1, 7), (9, 4), (1, 20), (9, 20)]
    tf32 = Fragment("a", 16, 8, 32, 1)
    assert [element(tf32, 0, 5, i) for i in range(4)] == [(1, 1), (9, 1), (1, 5), (9, 5)]


def test_b_operand_registers_are_the_two_halves_of_k() -> None:
    f = Fragment("b", 16, 16, 16, 1)
    assert [element(f, 0, 5, i) for i in range(8)] == [(1, 2), (1, 3), (1, 10), (1, 11), (9, 2), (9, 3), (9, 10), (9, 11)]


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("form", ["a", "b"])
def test_matrix_loads_fill_the_registers_in_order(form: str, bits: int) -> None:
    """Lane l of an ldmatrix.x4 gives row l % 8 of matrix l / 8; lane l receives word l % 4 of row l / 4 of every matrix."""
    rows, cols = 16, 256 // bits
    f = Fragment(form, rows, cols, bits, 1)  # type: ignore[arg-type]  # parametrised literal
    lanes, per = matrix_lanes(form, bits), 32 // bits  # type: ignore[arg-type]  # as above
    for lane, matrix, j in product(range(32), range(4), range(per)):
        row, col = lanes[8 * matrix + lane // 4]
        assert element(f, 0, lane, per * matrix + j) == (row, col + per * (lane % 4) + j)


def test_register_counts_are_those_the_language_states() -> None:
    assert registers_32(Fragment("acc", 64, 256, 32)) == 128
    assert registers_32(Fragment("a", 64, 128, 16)) == 32
    assert registers_32(Fragment("rowvec", 64, 1, 32)) == 2
    assert registers_32(Fragment("colvec", 1, 128, 32)) == 32
    assert registers_32(Fragment("acc", 64, 64, 16)) == 16
    assert registers_32(Fragment("acc", 64, 64, 1)) == 0
    assert registers_32(Fragment("vec", 1, 4096, 16, 4, chunk=8)) == 16


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (Fragment("acc", 96, 64, 32), "multiple of 64 rows, not 96"),
        (Fragment("acc", 64, 60, 32), "multiple of 8 columns, not 60"),
        (Fragment("acc", 128, 128, 32, 4, (2, 4)), "is 8 warps, the member has 4"),
        (Fragment("a", 64, 24, 16), "multiple of 16, not 24"),
        (Fragment("b", 24, 16, 16, 8, (2, 4)), "multiple of 32, not 24"),
        (Fragment("rows", 64, 32, 32), "multiple of 128 rows, not 64"),
        (Fragment("vec", 1, 12, 16, chunk=8), "in whole runs"),
        (Fragment("a", 64, 64, 64), "not 64-bit ones"),
        (Fragment("a", 64, 96, 4), "multiple of 64, not 96"),
    ],
)
def test_impossible_fragments_say_what_is_needed(f: Fragment, says: str) -> None:
    assert says in (fragment_problem(f) or "")
