"""Form conversions: the computed movement is what decides, and every refusal names a route."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from cake_ir.conversions import conversion, movement, reachable, transpose
from cake_ir.dtypes import DTYPES
from cake_ir.forms import Fragment, element, element_table, fragment_problem, registers
from cake_ir.forms_table import cast_form, depth
from cake_ir.types import FragT

ACC = Fragment("acc", 64, 128, 32)


def _as(form: str, bits: int, of: Fragment = ACC, **changes: object) -> Fragment:
    return replace(of, form=form, bits=bits, **changes)  # type: ignore[arg-type]  # literals in the callers


def test_accumulator_to_16_bit_a_moves_nothing_and_keeps_the_element_order() -> None:
    a = _as("a", 16)
    assert conversion(ACC, a).free and movement(ACC, a) == "none"
    assert element_table(ACC).rows == element_table(a).rows and element_table(ACC).cols == element_table(a).cols


def test_accumulator_to_8_bit_and_tf32_a_are_shuffles_within_the_quad() -> None:
    for bits in (8, 32):
        found = conversion(ACC, _as("a", bits))
        assert found.legal and found.instructions == registers(ACC) // 2 and movement(ACC, _as("a", bits)) == "quad"


def test_quad_k_order_makes_the_8_bit_operand_free() -> None:
    assert conversion(ACC, _as("a", 8, quad=True)).free


def test_accumulator_of_one_warp_is_a_b_operand_for_free() -> None:
    one = Fragment("acc", 16, 64, 32, 1)
    assert conversion(one, _as("b", 16, one)).free
    split = Fragment("acc", 128, 128, 32, 8, (8, 1))
    assert conversion(split, Fragment("b", 128, 128, 16, 8, (1, 8))).free


@pytest.mark.parametrize(
    ("src", "dst", "route"),
    [
        (ACC, _as("b", 16), 'load it with form="b"'),
        (ACC, _as("vec", 32), 'load it with form="vec"'),
        (Fragment("acc", 128, 64, 32), Fragment("rows", 128, 64, 32), "lm.tmem_load"),
        (Fragment("rows", 128, 64, 32), Fragment("acc", 128, 64, 32), 'form="acc"'),
        (Fragment("vec", 1, 1024, 16, chunk=8), Fragment("vec", 1, 1024, 32, chunk=4), "vec[8] meets vec[4]"),
        (Fragment("acc", 64, 64, 32, 4, (2, 2)), Fragment("acc", 64, 64, 32), "warps=(2, 2) and rows over all warps"),
        (Fragment("acc", 64, 64, 32), Fragment("acc", 64, 32, 32), "64 x 64 and 64 x 32"),
    ],
)
def test_what_is_not_in_the_table_names_the_route(src: Fragment, dst: Fragment, route: str) -> None:
    found = conversion(src, dst)
    assert not found.legal and route in found.route


def test_free_is_true_exactly_when_no_element_changes_thread() -> None:
    shapes = [ACC, Fragment("acc", 16, 64, 32, 1), Fragment("acc", 64, 64, 32, 4, (2, 2))]
    for src in shapes:
        for form in ("acc", "a", "b", "vec"):
            for bits in (8, 16, 32):
                dst = _as(form, bits, src, chunk=4)
                found = conversion(src, dst)
                if not found.legal and not found.route.startswith(("an `", "a `")):
                    assert movement(src, dst) != "none", (src, dst)
                if found.free:
                    for warp in range(src.warps):
                        for lane in range(32):
                            have = {element(src, warp, lane, i) for i in range(registers(src))}
                            assert {element(dst, warp, lane, i) for i in range(registers(dst))} <= have


def test_vectors_change_dtype_freely() -> None:
    assert conversion(Fragment("rowvec", 64, 1, 32), Fragment("rowvec", 64, 1, 16)).free
    assert conversion(Fragment("scalar", 1, 1, 32), Fragment("scalar", 1, 1, 16)).free


def test_transposing_stays_within_the_warp_or_is_refused() -> None:
    found = transpose(Fragment("acc", 16, 64, 16, 1))
    assert found.legal and found.instructions == 16  # 2 x 8 tiles
    assert "several warps" in transpose(Fragment("acc", 64, 64, 16)).route
    assert "16-bit" in transpose(ACC).route
    assert "view.T" in transpose(Fragment("vec", 16, 16, 16, 1)).route


def test_reachable_forms_are_what_a_refusal_offers() -> None:
    assert reachable(ACC, 16) == ("a",)
    assert reachable(Fragment("acc", 16, 64, 32, 1), 16) == ("a", "b")


def accepted() -> list[tuple[FragT, str, str, int]]:
    """Every form change that a cast may ask for, over forms, splits and element types."""
    out = []
    for warps in (1, 4, 8):
        for split in (None, (1, warps), (warps, 1)):
            for form, dtype in product(("acc", "a", "b", "rows", "vec"), ("f32", "bf16", "e4m3")):
                x = FragT(form, 32 * warps, 64, dtype, warps=split, chunk=4 if form == "vec" else None)  # type: ignore[arg-type]  # literals
                out += [(x, to, want, warps) for to, want in product(("acc", "a", "b", "rows", "vec"), ("f32", "tf32", "bf16", "e4m3")) if to != form]
    return [(x, to, want, warps) for x, to, want, warps in out if cast_form(x, to, want, warps) is None]


def test_a_cast_that_the_language_takes_leaves_its_elements_in_the_quad() -> None:
    found = accepted()
    assert {(x.form, to) for x, to, _, _ in found} == {("acc", "a"), ("acc", "b"), ("a", "acc"), ("b", "acc")}
    for x, to, want, warps in found:
        src, dst = (Fragment(f, x.rows, x.cols, 32 // depth(t) if f != "acc" else DTYPES[t].bits, warps, x.warps) for f, t in ((x.form, x.dtype), (to, want)))  # type: ignore[arg-type]  # forms
        if fragment_problem(src) is None and fragment_problem(dst) is None:
            assert movement(src, dst) in ("none", "quad"), (x, to, want, warps)


@pytest.mark.parametrize("to", ["a", "b"])
def test_an_accumulator_whose_columns_lie_on_several_warps_is_no_operand(to: str) -> None:
    split = FragT("acc", 64, 64, "f32", warps=(1, 4))
    why = cast_form(split, to, "bf16", 4)
    assert why is not None and f'load it with form="{to}"' in why[1]
    assert cast_form(FragT("acc", 64, 64, "f32", warps=(4, 1)), "a", "bf16", 4) is None


def test_a_fragment_that_no_thread_holds_is_not_tabulated() -> None:
    """65,536 x 64 elements over four warps are four million places: 220 MB that a cache would keep, for a text that D026 refuses."""
    known = element_table.cache_info().currsize
    assert conversion(Fragment("acc", 65536, 64, 32), Fragment("a", 65536, 64, 16)).legal
    assert element_table.cache_info().currsize == known
