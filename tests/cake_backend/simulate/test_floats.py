"""Arithmetic as the generated code does it: one rounding in fma, conversions, flushing, specials."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_backend.simulate import floats

f32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


def nearest(x: Fraction) -> np.float32:
    """The float32 nearest to an exact value, ties to even."""
    limit = Fraction(2) ** 128 - Fraction(2) ** 103
    if abs(x) >= limit:
        return np.float32(np.inf if x > 0 else -np.inf)
    largest = float(np.finfo(np.float32).max)
    guess = np.float32(min(max(float(x), -largest), largest))
    with np.errstate(over="ignore"):
        around = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    finite = [c for c in around if np.isfinite(c)]
    return min(finite, key=lambda c: (abs(Fraction(float(c)) - x), int(np.asarray(c).view(np.uint32)) & 1))


@given(f32, f32, f32)
@settings(max_examples=300, deadline=None)
def test_fma_rounds_once(a: float, b: float, c: float) -> None:
    with np.errstate(all="ignore"):
        got = floats.fma(np.float32(a), np.float32(b), np.float32(c))
    assert got == nearest(Fraction(a) * Fraction(b) + Fraction(c))


def test_fma_differs_from_two_roundings_and_from_double_rounding() -> None:
    a = np.float32(1 + 2.0**-12)
    assert floats.fma(a, a, np.float32(-1)) == np.float32(2.0**-11 + 2.0**-24)
    assert np.float32(a * a) - np.float32(1) == np.float32(2.0**-11)
    # The exact sum lies just above a tie of float32 by less than float64 can hold: rounding to float64 first would lose that.
    x, y = np.float32(1 + 2.0**-23), np.float32(2.0**-24)
    assert floats.fma(np.float32(2.0**-60), np.float32(2.0**-20), np.float32(1) + y) == np.float32(1)
    got = floats.fma(np.array([2.0**-60], np.float32), np.array([1], np.float32), np.float64(1 + 2.0**-24))
    assert got[0] == x


@pytest.mark.parametrize(("a", "b", "c"), [(np.inf, 1, 1), (np.inf, -1, np.inf), (np.inf, 0, 1), (np.nan, 1, 1), (1, 1, -np.inf)])
def test_fma_has_the_specials_of_ieee(a: float, b: float, c: float) -> None:
    with np.errstate(all="ignore"):
        got, want = floats.fma(np.float32(a), np.float32(b), np.float32(c)), np.float32(a) * np.float32(b) + np.float32(c)
    assert np.array_equal(got, want, equal_nan=True)


@given(st.lists(f32, min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_bits_survive_a_round_trip_through_memory(values: list[float]) -> None:
    x = np.array(values, np.float32)
    with np.errstate(all="ignore"):
        for name in ("f32", "bf16", "f16", "e4m3", "e5m2"):
            y = floats.rounded(x, name)
            assert np.array_equal(floats.decode(floats.encode(y, name), name), y)
            assert np.array_equal(floats.rounded(y, name), y)


def test_fp8_saturates_and_keeps_nan() -> None:
    x = np.array([1000, -1e9, np.inf, np.nan, 447], np.float32)
    assert np.array_equal(floats.rounded(x, "e4m3"), np.array([448, -448, 448, np.nan, 448], np.float32), equal_nan=True)


def test_tf32_rounds_half_away_and_the_tensor_core_truncates() -> None:
    half = np.array([1 + 2.0**-11, -(1 + 2.0**-11), 1 + 3 * 2.0**-12, np.inf, np.nan], np.float32)
    assert np.array_equal(
        floats.to_tf32(half), np.array([1 + 2.0**-10, -(1 + 2.0**-10), 1 + 2.0**-10, np.inf, np.nan], np.float32), equal_nan=True
    )
    assert np.array_equal(floats.truncated_tf32(half[:3]), np.array([1, -1, 1], np.float32))


def test_casts_to_integers_clamp_round_as_asked_and_map_nan_to_zero() -> None:
    x = np.array([2.5, -2.5, 1e20, -1e20, np.nan, 3.7], np.float32)
    assert floats.converted(x, "f32", "i32", "rn").tolist() == [2, -2, 2147483647, -2147483648, 0, 4]
    assert floats.converted(x, "f32", "i32", "rz").tolist() == [2, -2, 2147483647, -2147483648, 0, 3]
    assert floats.converted(x, "f32", "u8", "rp").tolist() == [3, 0, 255, 0, 0, 4]
    assert floats.converted(np.array([300, -1], np.int32), "i32", "u8", "rn").tolist() == [44, 255]


def test_bf16_casts_round_to_nearest_even_or_towards_zero() -> None:
    x = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, -(1 + 3 * 2.0**-8)], np.float32)
    assert floats.converted(x, "f32", "bf16", "rn").tolist() == [1, 1 + 2.0**-6, -(1 + 2.0**-6)]
    assert floats.converted(x, "f32", "bf16", "rz").tolist() == [1, 1 + 2.0**-7, -(1 + 2.0**-7)]
    assert floats.converted(x, "f32", "bf16", "rn").tolist() == x.astype(ml_dtypes.bfloat16).astype(np.float32).tolist()


def test_approximate_instructions_have_the_specials_of_the_hardware() -> None:
    with np.errstate(all="ignore"):
        assert floats.exp2(np.array([-np.inf, np.inf, np.nan, 0, -130], np.float32)).tolist()[:2] == [0, np.inf]
        assert floats.exp2(np.float32(-130)) == 0  # a subnormal result is flushed
        assert floats.rcp(np.array([0, -0.0, np.inf, 2.0**-130], np.float32)).tolist() == [np.inf, -np.inf, 0, np.inf]
        assert np.isnan(floats.rsqrt(np.float32(-1))) and floats.rsqrt(np.float32(0)) == np.inf
        assert np.isnan(floats.exp2(np.float32(np.nan)))


def test_narrow_types_round_to_nearest_even_and_saturate() -> None:
    x = np.float32([0.24, 0.25, 0.26, 0.75, 1.25, 2.5, 3.5, 5.0, 7.0, -100.0])
    assert floats.rounded(x, "e2m1").tolist() == [0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 4.0, 4.0, 6.0, -6.0]
    assert floats.rounded(np.float32([7.3, 7.8, 100.0]), "e2m3").tolist() == [7.5, 7.5, 7.5]
    assert floats.rounded(np.float32([26.0, 30.0, -30.0]), "e3m2").tolist() == [24.0, 28.0, -28.0]
