"""Addresses in generated text are those of the layout."""

import pytest
from test_fragments import evaluate

from cake_backend.cuda.addresses import chunk_address, element_address
from cake_backend.cuda.context import Rect
from cake_ir.layout import ViewLayout, linear_offset, offset

VIEWS = [
    ViewLayout(0, 64, 64, 16, swizzle="128b"),
    ViewLayout(1024, 64, 128, 16, swizzle="128b"),
    ViewLayout(512, 32, 32, 16, swizzle="64b"),
    ViewLayout(0, 32, 64, 16, swizzle="32b"),
    ViewLayout(0, 16, 64, 32, swizzle="128b"),
    ViewLayout(0, 16, 128, 8, swizzle="128b"),
    ViewLayout(64, 16, 40, 16),
]


@pytest.mark.parametrize("view", VIEWS, ids=lambda v: f"{v.rows}x{v.cols}x{v.elem_bits}_{v.swizzle}")
@pytest.mark.parametrize(("row0", "col0"), [(0, 0), (8, 0), (8, 16)])
def test_a_chunk_lies_where_the_layout_puts_it(view: ViewLayout, row0: int, col0: int) -> None:
    per = 128 // view.elem_bits
    r = Rect("v", "base", str(col0) if col0 else "", view.rows - row0, view.cols - col0, False)
    text = chunk_address(r, view, "row", "chunk")
    base = linear_offset(view, 0, row0, 0)
    for row in range(view.rows - row0):
        for chunk in range((view.cols - col0) // per):
            found = evaluate(text, base=base, row=row, chunk=chunk)
            assert found == offset(view, 0, row0 + row, col0 + chunk * per)


@pytest.mark.parametrize("view", VIEWS, ids=lambda v: f"{v.rows}x{v.cols}x{v.elem_bits}_{v.swizzle}")
@pytest.mark.parametrize("row0", [1, 3, 4, 13])
def test_a_chunk_lies_there_as_well_where_the_rectangle_starts_inside_the_swizzle(view: ViewLayout, row0: int) -> None:
    """Off by the turn of the first row on an H200: `sx.rows(r, 1)` of a view with swizzle="32b"."""
    r = Rect("v", "base", "", view.rows - row0, view.cols, False, phase="first" if view.swizzle else "")
    for row in range(view.rows - row0):
        for chunk in range(view.cols * view.elem_bits // 128):
            found = evaluate(chunk_address(r, view, "row", "chunk"), base=linear_offset(view, 0, row0, 0), row=row, chunk=chunk, first=row0)
            assert found == offset(view, 0, row0 + row, chunk * (128 // view.elem_bits))


@pytest.mark.parametrize("view", VIEWS, ids=lambda v: f"{v.rows}x{v.cols}x{v.elem_bits}_{v.swizzle}")
def test_an_element_lies_where_the_layout_puts_it(view: ViewLayout) -> None:
    text = element_address(Rect("v", "base", "", view.rows, view.cols, False), view, "row", "col")
    for row in range(view.rows):
        for col in range(view.cols):
            assert evaluate(text, base=view.offset, row=row, col=col) == offset(view, 0, row, col)
