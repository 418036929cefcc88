"""TMA boxes: they cover the rectangle's bytes once, and land where the layout puts their elements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_ir.boxes import MAX_BOX, tma_boxes, transaction_bytes
from cake_ir.layout import SWIZZLES, LayoutError, ViewLayout, linear_offset, view_bytes


@given(st.sampled_from(["128b", "64b", "32b"]), st.sampled_from([8, 16, 32]), st.integers(1, 40), st.integers(1, 3), st.integers(2, 5))
def test_boxes_cover_a_view_once_and_each_keeps_the_limits(swizzle: str, bits: int, groups: int, width: int, rank: int) -> None:
    cols = SWIZZLES[swizzle].span * 8 // bits * width
    view = ViewLayout(1024, 8 * groups, cols, bits, 1, swizzle)
    boxes = tma_boxes(view, rank)
    assert transaction_bytes(boxes) == view_bytes(view)
    covered = set()
    for b in boxes:
        assert max(b.extents) <= MAX_BOX and len(b.extents) == len(b.coords) == rank
        assert b.extents[0] * bits // 8 <= SWIZZLES[swizzle].span
        for r in range(b.extents[1]):
            for c in range(0, b.extents[0], cols // width):
                at = (b.coords[1] + r, b.coords[0] + c)
                assert b.smem + r * SWIZZLES[swizzle].span == linear_offset(view, 0, *at) - view.offset
                covered.add(at)
    assert len(covered) == view.rows * width


def test_a_view_wider_than_the_span_takes_one_box_a_panel() -> None:
    q = ViewLayout(0, 128, 128, 16, 1, "128b")
    assert [(b.extents, b.coords, b.smem) for b in tma_boxes(q, 4)] == [
        ((64, 128, 1, 1), (0, 0, 0, 0), 0),
        ((64, 128, 1, 1), (64, 0, 0, 0), 16384),
    ]


def test_rows_of_a_view_keep_the_parents_panel_stride() -> None:
    q = ViewLayout(0, 128, 128, 16, 1, "128b")
    assert [(b.extents[1], b.smem) for b in tma_boxes(q, 2, row=64, rows=64)] == [(64, 8192), (64, 24576)]


def test_box_places_rows_on_another_axis() -> None:
    v = ViewLayout(0, 64, 128, 16, 2, "128b")
    assert [(b.extents, b.coords) for b in tma_boxes(v, 3, box=(128, 1, 64))] == [((64, 1, 64), (0, 0, 0)), ((64, 1, 64), (64, 0, 0))]
    with pytest.raises(LayoutError, match="in that order: 128 x 64"):
        tma_boxes(v, 3, box=(64, 1, 128))
    with pytest.raises(LayoutError, match="2 entries, the tensor has 3 axes"):
        tma_boxes(v, 3, box=(128, 64))


def test_a_ragged_tail_is_stored_by_single_rows() -> None:
    v = ViewLayout(0, 64, 128, 16, 2, "128b")
    boxes = tma_boxes(v, 3, row=5, rows=59, box=(128, 1, 59), single_row=True)
    assert [(b.extents, b.coords, b.smem) for b in boxes] == [((64, 1, 1), (0, 0, 0), 640), ((64, 1, 1), (64, 0, 0), 8192 + 640)]


def test_multicast_slices_are_the_rows_cut_in_equal_parts() -> None:
    b = ViewLayout(65536, 256, 64, 16, 4, "128b")
    parts = [tma_boxes(b, 2, slices=2, slice_index=i) for i in range(2)]
    assert [(p[0].extents, p[0].coords, p[0].smem) for p in parts] == [((64, 128), (0, 0), 0), ((64, 128), (0, 128), 16384)]
    assert transaction_bytes(parts[0], 2) == view_bytes(b)
    with pytest.raises(LayoutError, match="8-row groups"):
        tma_boxes(ViewLayout(0, 24, 64, 16, 1, "128b"), 2, slices=2)


def test_long_vectors_are_split_at_the_box_limit() -> None:
    assert [(b.extents, b.coords, b.smem) for b in tma_boxes(ViewLayout(0, 1, 512, 32), 2)] == [
        ((256, 1), (0, 0), 0),
        ((256, 1), (256, 0), 1024),
    ]


@pytest.mark.parametrize(
    ("view", "kwargs", "says"),
    [
        (ViewLayout(0, 64, 512, 16), {}, "wider than a box of 256"),
        (ViewLayout(0, 64, 64, 16), {"col": 0, "cols": 32}, "is not contiguous"),
        (ViewLayout(0, 64, 64, 16, 1, "128b"), {"col": 0, "cols": 32}, "whole panels of 64 columns"),
        (ViewLayout(0, 64, 64, 16, 1, "128b"), {"row": 4, "rows": 8}, "multiple of 8"),
        (ViewLayout(64, 1, 64, 32), {}, "not a multiple of 128"),
        (ViewLayout(0, 1, 16, 32, 2), {}, "64 bytes apart"),
        (ViewLayout(0, 1, 6, 16), {}, "not a multiple of 16"),
    ],
)
def test_copies_that_no_box_can_do_say_why(view: ViewLayout, kwargs: dict[str, int], says: str) -> None:
    with pytest.raises(LayoutError, match=says):
        tma_boxes(view, 2, **kwargs)
