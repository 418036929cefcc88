"""Descriptor fields against the words that hand-written kernels use, and against the layout they describe."""

from __future__ import annotations

import pytest

from cake_ir.descriptors import descriptor, operand_problem
from cake_ir.layout import SWIZZLES, LayoutError, ViewLayout, offset


def _k128(address: int) -> int:
    """The K-major 128-byte word of hand-written Hopper code."""
    return address >> 4 | 1 << 16 | 64 << 32 | 1 << 62


def test_k_major_words_are_those_of_hand_written_kernels() -> None:
    x = ViewLayout(0, 128, 128, 16, 1, "128b")
    d = descriptor(x, 0, 0, 64, 0, 128)
    assert [(d.start + k) for k in d.k_steps] == [(kk >> 2) * 16384 + (kk & 3) * 32 for kk in range(8)]
    assert d.wgmma() == _k128(0) and d.wgmma(2048) == _k128(2048)


def test_mn_major_steps_are_sixteen_rows_and_lbo_is_the_panel_stride() -> None:
    v = ViewLayout(16384, 128, 128, 16, 2, "128b")
    d = descriptor(v, 1, 0, 128, 0, 128, transposed=True)
    assert (d.start, d.lbo, d.sbo, d.k_steps[:3]) == (16384 + 32768, 16384, 1024, (0, 2048, 4096))
    assert d.wgmma() == d.start >> 4 | (16384 >> 4) << 16 | 64 << 32 | 1 << 62


def test_more_than_64_rows_step_by_blocks() -> None:
    x = ViewLayout(0, 256, 64, 16, 1, "128b")
    assert descriptor(x, 0, 0, 128, 0, 64).row_steps == (0, 8192)
    assert descriptor(x, 0, 128, 64, 0, 64).start == 16384


@pytest.mark.parametrize(("name", "wgmma", "tcgen05"), [("128b", 1, 2), ("64b", 2, 4), ("32b", 3, 6)])
def test_modes_are_encoded_differently_for_the_two_instruction_families(name: str, wgmma: int, tcgen05: int) -> None:
    v = ViewLayout(0, 64, SWIZZLES[name].span // 2, 16, 1, name)
    d = descriptor(v, 0, 0, 64, 0, v.cols)
    assert d.wgmma() >> 62 == wgmma and d.wgmma() >> 46 & 1 == 0
    assert d.tcgen05() >> 61 == tcgen05 and d.tcgen05() >> 46 & 7 == 1
    assert d.sbo == 8 * SWIZZLES[name].span


@pytest.mark.parametrize("name", ["128b", "64b", "32b"])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_fields_reach_every_element_of_a_k_major_operand(name: str, bits: int) -> None:
    """Walk the operand as the hardware does (start + K step + SBO per 8 rows + row, then the XOR) and compare."""
    view = ViewLayout(2048, 32, SWIZZLES[name].span * 8 // bits * 2, bits, 2, name)
    mode, d = SWIZZLES[name], descriptor(view, 1, 8, 16, 0, view.cols)
    k_elems = 256 // bits
    for row in range(16):
        for col in range(view.cols):
            step, inside = d.k_steps[col // k_elems], col % k_elems * bits // 8
            address = d.start + step + row // 8 * d.sbo + row % 8 * mode.span + inside
            assert mode.apply(address) == offset(view, 1, 8 + row, col)


def test_fields_reach_every_element_of_an_mn_major_operand() -> None:
    view = ViewLayout(0, 32, 128, 16, 1, "128b")
    mode, d = SWIZZLES["128b"], descriptor(view, 0, 0, 32, 0, 128, transposed=True)
    for k in range(32):
        for mn in range(128):
            address = d.start + d.k_steps[k // 16] + k % 16 // 8 * d.sbo + k % 8 * mode.span + mn // 64 * d.lbo + mn % 64 * 2
            assert mode.apply(address) == offset(view, 0, k, mn)


@pytest.mark.parametrize(
    ("view", "rect", "transposed", "says"),
    [
        (ViewLayout(0, 64, 64, 16), (0, 64, 0, 64), False, 'declare it with swizzle="128b"'),
        (ViewLayout(0, 64, 128, 8, 1, "128b"), (0, 64, 0, 128), True, ".T is for 16-bit types"),
        (ViewLayout(0, 64, 64, 16, 1, "128b"), (4, 8, 0, 64), False, "multiple of 8 rows"),
        (ViewLayout(0, 64, 64, 16, 1, "128b"), (0, 64, 8, 16), False, "multiple of 16, the K"),
        (ViewLayout(0, 64, 64, 16, 1, "128b"), (0, 64, 0, 24), False, "K is 24 columns"),
        (ViewLayout(0, 64, 128, 16, 1, "128b"), (0, 64, 32, 64), True, "panel of 64 columns"),
        (ViewLayout(64, 64, 64, 16, 1, "128b"), (0, 64, 0, 64), False, "not a multiple of 1024"),
    ],
)
def test_operands_that_no_descriptor_fits_say_why(view: ViewLayout, rect: tuple[int, int, int, int], transposed: bool, says: str) -> None:
    assert says in (operand_problem(view, *rect, transposed) or "")
    with pytest.raises(LayoutError):
        descriptor(view, 0, *rect, transposed)
