"""Number formats as the generated code computes with them: bits in memory, float32 in registers, rounding where a cast stands.

A register fragment of a floating-point type is a float32 array whose values are exact in that type; integers are int32 (or their own
width), truth values are bool. Products that meet a sum are fused with one rounding (`fma`), as the emitter fuses them. The approximate
instructions (`ex2`, `lg2`, `rcp`, ..) are taken as exact to the last float32 bit, with subnormal inputs and results flushed to zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from cake_backend.simulate.faults import NotSimulated
from cake_ir.dtypes import DTYPES
from cake_ir.ops.elementwise import EXP2_POLYNOMIAL

Array = NDArray[Any]

RAW: dict[int, Any] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
"""Unsigned integer type that carries the bits of an element of so many bits."""

_NUMPY: dict[str, Any] = {
    "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "ue8m0": ml_dtypes.float8_e8m0fnu,
    "e2m1": ml_dtypes.float4_e2m1fn, "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
}  # fmt: skip


def numpy_dtype(name: str) -> Any:
    """The NumPy element type of one element of a tensor; types narrower than a byte have one each there."""
    return np.dtype(_NUMPY[name])


def raw_dtype(name: str) -> Any:
    """The unsigned integer type that carries one element's bits."""
    return RAW[numpy_dtype(name).itemsize * 8]


def is_float(name: str) -> bool:
    """Whether fragments of this dtype are held as float32."""
    return DTYPES[name].kind in ("float", "scale")


def compute_dtype(name: str) -> Any:
    """The NumPy type of a register fragment of this dtype."""
    return np.float32 if is_float(name) else numpy_dtype(name).type


def decode(raw: Array, name: str) -> Array:
    """Bits from memory as values to compute with."""
    if name == "bf16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.view(numpy_dtype(name)).astype(compute_dtype(name), copy=False)


def encode(values: Array, name: str) -> Array:
    """Values of a fragment as bits for memory; they are exact in `name` already, so nothing rounds here."""
    return np.ascontiguousarray(values.astype(numpy_dtype(name), copy=False)).view(raw_dtype(name))


def poison(shape: tuple[int, ...], name: str) -> Array:
    """What registers hold before anything was written to them: NaN, or the largest integer."""
    if is_float(name):
        return np.full(shape, _UNDEFINED, np.float32)
    if name == "bool":
        return np.ones(shape, np.bool_)
    kind = numpy_dtype(name)
    return np.full(shape, np.iinfo(kind).max, kind)


_UNDEFINED = np.uint32(0xFFFFFFFF).view(np.float32)
"""A NaN that no arithmetic makes: its payload tells it from those of 0/0 and the like."""


def _undefined(x: Any) -> Any:
    """Which elements were never written (None: none of them): a NaN with a payload, which arithmetic hands on."""
    nan = np.isnan(x)
    if not nan.any():
        return None
    return nan & ((np.asarray(x, np.float32).view(np.uint32) & 0x003FFFFF) != 0)


def larger(a: Any, b: Any) -> Any:
    """The larger of two, a NaN ignored, except that of registers and bytes that nothing was written to: what comes of them is undefined too."""
    return _handed_on(np.fmax(a, b), a, b)


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two, as `larger`."""
    return _handed_on(np.fmin(a, b), a, b)


def _handed_on(result: Any, *operands: Any) -> Any:
    for x in operands:
        lost = _undefined(x)
        if lost is not None:
            result = np.where(lost, _UNDEFINED, result)
    return result


# ------------------------------------------------------------------ rounding


def rounded(x: Array, name: str) -> Array:
    """float32 values rounded to `name` to nearest even, kept as float32; types of at most 8 bits saturate, NaN stays where the type has one."""
    if name in ("f32", "ue8m0"):
        return x
    if name == "bf16" or name == "f16":
        return x.astype(numpy_dtype(name)).astype(np.float32)
    if name == "tf32":
        return to_tf32(x)
    if DTYPES[name].is_float and DTYPES[name].bits <= 8:
        top = np.float32(DTYPES[name].max_finite)
        return np.clip(x, -top, top).astype(numpy_dtype(name)).astype(np.float32)
    raise NotSimulated(f"rounding to {name}")


def to_tf32(x: Array) -> Array:
    """Round to 10 mantissa bits, half away from zero (`cvt.rna.tf32`)."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    with np.errstate(over="ignore"):
        cut = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(x), cut, x)


def truncated_tf32(x: Array) -> Array:
    """What the tensor core reads of a 32-bit operand: the upper 19 bits."""
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def power_of_two(x: Array, mode: str) -> Array:
    """float32 values as powers of two (ue8m0): rounded down in magnitude (rz) or up, saturating; NaN stays."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.log2(np.abs(x).astype(np.float64))
        exponent = np.clip((np.floor if mode == "rz" else np.ceil)(exponent), -127, 127)
    return np.where(np.isnan(x), np.float32(np.nan), np.exp2(exponent).astype(np.float32))


_TO_INTEGER: dict[str, Callable[[Array], Array]] = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}


def converted(x: Array, have: str, want: str, mode: str) -> Array:
    """`lm.cast`: the value of dtype `have` as dtype `want`, rounding `mode` rn (nearest even), rz, rm or rp."""
    if have == want:
        return x
    if is_float(want):
        y = x.astype(np.float32, copy=False)
        if want == "ue8m0":
            return power_of_two(y, mode)
        if mode == "rz" and want == "bf16":
            return (np.ascontiguousarray(y).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        if mode == "rz" and want == "f16":
            near = y.astype(np.float16)
            beyond = np.abs(near.astype(np.float32)) > np.abs(y)
            return np.where(beyond, np.nextafter(near, np.float16(0)), near).astype(np.float32)
        if mode not in ("rn", "rna"):
            raise NotSimulated(f"the rounding mode {mode} to {want}")
        return rounded(y, want)
    kind = numpy_dtype(want)
    if want == "bool":
        return x != 0
    if is_float(have):
        limits = np.iinfo(kind)
        with np.errstate(invalid="ignore"):
            y = _TO_INTEGER[mode if mode in _TO_INTEGER else "rn"](x.astype(np.float64))
            return np.where(np.isnan(y), 0, np.clip(y, float(limits.min), float(limits.max))).astype(kind)
    return x.astype(kind)


# ------------------------------------------------------------------ arithmetic


def fma(a: Any, b: Any, c: Any) -> Array:
    """a * b + c in float32 with one rounding.

    The product is exact in float64; the sum there is rounded to odd, which makes the second rounding the only one that counts.
    """
    p = np.multiply(a, b, dtype=np.float64)
    c = np.asarray(c, np.float64)
    s = p + c
    back = s - p
    error = (p - (s - back)) + (c - back)
    inexact = np.isfinite(error) & (error != 0) & np.isfinite(s)
    if inexact.any():
        bits = np.atleast_1d(np.ascontiguousarray(s)).view(np.int64)
        even = np.atleast_1d(inexact) & ((bits & 1) == 0)
        toward = np.where((np.atleast_1d(error) > 0) == (np.atleast_1d(s) > 0), 1, -1)
        s = np.where(even, bits + toward, bits).view(np.float64).reshape(np.shape(s))
    return np.asarray(s).astype(np.float32)


_TINY = np.float32(2.0**-126)


def flushed(x: Array) -> Array:
    """Subnormals replaced by zero of the same sign, as the `.ftz` instructions do."""
    return np.where(np.abs(x) < _TINY, np.copysign(np.float32(0), x), x)


def _approximate(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: flushed(f(flushed(np.asarray(x, np.float32)).astype(np.float64)).astype(np.float32))


exp2 = _approximate(np.exp2)
log2 = _approximate(np.log2)
rcp = _approximate(lambda x: 1.0 / x)
rsqrt = _approximate(lambda x: 1.0 / np.sqrt(x))
sqrt = _approximate(np.sqrt)


def exp2_fma(x: Array) -> Array:
    """2^x by a polynomial: the integer part goes to the exponent, whatever that makes of x above 127."""
    low = larger(np.asarray(x, np.float32), np.float32(-126))
    whole = low + np.float32(12582912)
    part = low - (whole - np.float32(12582912))
    power = np.float32(EXP2_POLYNOMIAL[0])
    for c in EXP2_POLYNOMIAL[1:]:
        power = fma(power, part, np.float32(c))
    bits = np.ascontiguousarray(whole).view(np.uint32) << np.uint32(23)
    return (bits + np.ascontiguousarray(power).view(np.uint32)).view(np.float32).reshape(np.shape(x))


def tanh(x: Array) -> Array:
    return np.tanh(np.asarray(x, np.float64)).astype(np.float32)


def exp(x: Array) -> Array:
    """exp2(x * log2 e), the product rounded."""
    return exp2(x * np.float32(1.4426950408889634))


def log(x: Array) -> Array:
    """log2(x) * ln 2, rounded."""
    return log2(x) * np.float32(0.6931471805599453)


def sigmoid(x: Array) -> Array:
    return rcp(np.float32(1) + exp2(x * np.float32(-1.4426950408889634)))


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def gelu(x: Array) -> Array:
    """The tanh form."""
    inner = np.float32(0.7978845608028654) * fma(np.float32(0.044715) * x, x * x, x)
    return np.float32(0.5) * x * (np.float32(1) + tanh(inner))


def erf(x: Array) -> Array:
    from math import erf as one

    return np.vectorize(one, otypes=[np.float64])(np.asarray(x, np.float64)).astype(np.float32)


def div(x: Array, y: Array) -> Array:
    """x * rcp(y): how `/` is emitted."""
    return x * rcp(y)
