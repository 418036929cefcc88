"""The comparison: what passes, what fails, and how failures are located. Each part of the formula is tested by what only it catches."""

from __future__ import annotations

import json
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake_backend.judge.numerics import compare_argmin, compare_close, compare_exact, count_poison, describe_pattern
from cake_backend.task import Tolerance

BF16 = ml_dtypes.bfloat16
TOL = Tolerance(reason="test", rtol=5e-3, scaled=1e-3)
rng = np.random.default_rng(0)
REF = rng.standard_normal((128, 192))


def out(change=None) -> np.ndarray:
    made = REF.astype(BF16)
    if change is not None:
        change(made)
    return made


def test_one_rounding_passes() -> None:
    verdict = compare_close(out(), REF, TOL)
    assert verdict.ok and verdict.failures == 0 and 0 < verdict.worst <= 1 and verdict.elements == REF.size


def test_one_wrong_element_fails_and_is_located() -> None:
    def change(a):
        a[17, 33] = 9

    verdict = compare_close(out(change), REF, TOL)
    assert not verdict.ok and verdict.failures == 1
    assert (verdict.worst_at["row"], verdict.worst_at["column"], verdict.worst_at["found"]) == (17, 33, 9.0)


@pytest.mark.parametrize(("wrong", "where"), [(np.nan, 1), (np.inf, 1), (-np.inf, 1)])
def test_a_non_finite_value_where_none_belongs_fails(wrong: float, where: int) -> None:
    def change(a):
        a[5, 7] = wrong

    verdict = compare_close(out(change), REF, Tolerance(reason="loose", atol=1e30))
    assert not verdict.ok and verdict.nonfinite_mismatches == where


def test_non_finite_values_must_match_in_place_and_sign() -> None:
    ref = np.array([[np.nan, np.inf, -np.inf, 1.0]])
    assert compare_close(ref.astype(np.float32), ref, TOL).ok
    for wrong in ([np.inf, np.inf, -np.inf, 1], [np.nan, -np.inf, -np.inf, 1], [np.nan, np.inf, 0, 1], [0, np.inf, -np.inf, 1], [np.nan] * 4):
        assert not compare_close(np.array([wrong], np.float32), ref, TOL).ok


def test_a_reference_that_overflows_the_output_type_expects_infinity() -> None:
    ref = np.array([[1e39, 1.0]])
    assert compare_close(np.array([[np.inf, 1]], np.float32), ref, TOL).ok
    assert not compare_close(np.array([[3e38, 1]], np.float32), ref, TOL).ok


def test_absolute_and_scaled_parts_carry_small_values() -> None:
    ref = np.array([[0.0, 100.0]])
    near = np.array([[0.05, 100.0]], np.float32)
    assert compare_close(near, ref, TOL).ok, "the row's size allows 1e-3 of about 70"
    assert not compare_close(near, ref, Tolerance(reason="t", rtol=5e-3)).ok
    assert compare_close(near, ref, Tolerance(reason="t", atol=0.06)).ok


def test_the_oracles_own_scale_replaces_the_rows_size() -> None:
    ref, near = np.zeros((1, 2)), np.array([[0.5, 0.5]], np.float32)
    assert not compare_close(near, ref, TOL).ok
    assert compare_close(near, ref, TOL, scale=np.full((1, 2), 1000.0)).ok
    assert compare_close(near, ref, TOL, scale=np.full(1, 1000.0)).ok
    assert not compare_close(near, ref, TOL, scale=np.array([[1000.0, np.inf]])).ok, "an infinite scale excuses nothing"


def test_a_share_of_small_errors_can_be_allowed() -> None:
    def change(a):
        a[::16, ::16] = (REF[::16, ::16] * 1.02).astype(BF16)

    tolerance = Tolerance(reason="t", rtol=5e-3, ratio=0.99, cap=20)
    assert compare_close(out(change), REF, tolerance).ok
    assert not compare_close(out(change), REF, Tolerance(reason="t", rtol=5e-3)).ok


def test_one_large_error_fails_although_its_share_is_allowed() -> None:
    def change(a):
        a[0, 0] = 50

    verdict = compare_close(out(change), REF, Tolerance(reason="t", rtol=5e-3, ratio=0.99, cap=20))
    assert not verdict.ok and "at most 20 allowed anywhere" in verdict.reason


def test_a_wrong_tile_fails_although_its_share_is_allowed() -> None:
    ref = rng.standard_normal((640, 640))
    made = ref.astype(BF16)
    made[64:128, 192:256] = (ref[64:128, 192:256] * 1.02).astype(BF16)
    verdict = compare_close(made, ref, Tolerance(reason="t", rtol=5e-3, ratio=0.98, cap=20))
    assert not verdict.ok and "tiles are wrong" in verdict.reason
    assert (verdict.clusters[0]["row"], verdict.clusters[0]["column"]) == (64, 192)


def test_sampled_rows_keep_their_numbers() -> None:
    rows = np.array([3, 64, 65, 66, 900])
    made = REF[:5].astype(BF16)
    made[1:4] = 7
    verdict = compare_close(made, REF[:5], TOL, rows=rows)
    assert verdict.worst_at["row"] in (64, 65, 66)
    assert {c["row"] for c in verdict.clusters} == {64} and "rows 64 to 66" in verdict.pattern


def test_lengths_that_differ_are_an_error_not_a_truncation() -> None:
    with pytest.raises(ValueError, match="output of shape"):
        compare_close(REF[:3].astype(BF16), REF, TOL)
    with pytest.raises(ValueError, match="row numbers"):
        compare_close(REF.astype(BF16), REF, TOL, rows=np.arange(3))
    with pytest.raises(ValueError, match="output of shape"):
        compare_exact(np.zeros(3), np.zeros(4), TOL)


def test_an_empty_output_is_right() -> None:
    assert compare_close(np.zeros((0, 5), np.float32), np.zeros((0, 5)), TOL).ok


def test_exact_means_every_bit_that_counts() -> None:
    ref = np.array([1.0, np.nan, -3.0])
    assert compare_exact(ref.astype(np.float32), ref, TOL).ok
    assert not compare_exact(np.array([1.0, np.nan, -3.0000002], np.float32), ref, TOL).ok
    assert not compare_exact(np.array([1, 2, 3]), np.array([1, 2, 4]), TOL).ok


ARG = Tolerance(reason="t", compare="argmin", atol=1e-4)


def argmin(chosen, ref, gap, best=None, exact=False):
    n = len(chosen)
    return compare_argmin(
        np.array(chosen, np.int32), np.array(ref), np.array(gap, float), np.zeros(n) if best is None else np.array(best, float), ARG,
        limit=10, scale=np.ones(n), exact=exact, rows=np.arange(n),
    )  # fmt: skip


def test_an_index_within_the_tolerance_of_the_best_passes() -> None:
    assert argmin([1, 2], [1, 3], [0, 5e-5]).ok
    verdict = argmin([1, 2], [1, 3], [0, 5e-3])
    assert not verdict.ok and verdict.extra["different_index"] == 1


def test_a_tie_must_go_to_the_lowest_index_only_where_ties_are_exact() -> None:
    assert argmin([4], [1], [0.0]).ok
    verdict = argmin([4], [1], [0.0], exact=True)
    assert not verdict.ok and "ties did not go to the lowest" in verdict.reason


def test_indices_out_of_range_fail_whatever_they_score() -> None:
    for bad in (-1, 10, 2**30):
        verdict = argmin([bad], [1], [np.nan])
        assert not verdict.ok and verdict.extra["out_of_range"] == 1


def test_a_row_without_a_candidate_must_choose_what_the_oracle_says() -> None:
    assert argmin([0], [0], [np.nan], best=[np.inf]).ok
    assert not argmin([3], [0], [np.nan], best=[np.inf]).ok


def test_unwritten_elements_are_counted_by_their_bits() -> None:
    from cake_backend.judge.device.buffers import poison_pattern

    pattern = poison_pattern(0xABC)
    raw = bytearray(pattern.to_bytes(4, "little") * 8)
    assert count_poison(raw, pattern, 4) == 8 and count_poison(raw, pattern, 2) == 16 and count_poison(raw, pattern, 8) == 4
    raw[0:2] = b"\0\0"
    assert count_poison(raw, pattern, 4) == 7 and count_poison(raw, pattern, 2) == 15
    for dtype in (np.float32, np.float16, BF16):
        assert np.isnan(np.frombuffer(pattern.to_bytes(4, "little"), dtype).astype(float)).all(), "poison is NaN in every float type"
    assert len({poison_pattern(s) for s in range(4096)}) == 4096


def test_a_pattern_of_lanes_is_described() -> None:
    bad = np.zeros((64, 256), bool)
    bad[:, 6::8] = True
    bad[:, 7::8] = True
    assert "every failing column modulo 8 is in {6, 7}" in describe_pattern(bad, np.arange(64))


def test_a_verdict_is_json() -> None:
    made = out()
    made[0, 0] = np.nan
    text = json.dumps(compare_close(made, REF, TOL).to_json(), allow_nan=False)
    assert '"worst": "inf"' in text


@given(st.floats(-1e6, 1e6), st.floats(0, 1), st.floats(1e-6, 1e-1))
def test_the_bound_is_where_the_formula_puts_it(ref: float, atol: float, rtol: float) -> None:
    tolerance = Tolerance(reason="t", atol=atol, rtol=rtol)
    bound = atol + rtol * abs(ref)
    if bound < 1e-9 * max(1.0, abs(ref)):
        return
    inside, outside = np.array([[ref + bound * 0.99]]), np.array([[ref + bound * 1.01]])
    assert compare_close(inside, np.array([[ref]]), tolerance).ok
    assert not compare_close(outside, np.array([[ref]]), tolerance).ok or math.isclose(float(outside[0, 0]), ref)
