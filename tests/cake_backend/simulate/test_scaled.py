"""Block-scaled products as the tensor core forms them: exact decoding of narrow types, packed fp4, and scales by lane, column and byte."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from bench.verify.cases.block_scales import atoms, scaled, words
from cake_backend.simulate import SimResult, simulate
from cake_backend.simulate.floats import decode
from cake_backend.simulate.memory import Placement, Pool
from cake_backend.simulate.scaled import decoded, multiplied
from cake_ir import parse, specialise
from cake_ir.dtypes import DTYPES
from cake_ir.program import Program
from cake_verify.rules.examples import BLOCK_SCALED, edit

TYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn}


def program(text: str, target: str) -> Program:
    found = specialise(parse(text, "t").schedules[0], {}, target).program
    assert found is not None
    return found


def value(bits: int, exponent: int, mantissa: int) -> float:
    """A narrow float by its definition: sign, biased exponent, fraction; subnormals where the exponent is 0."""
    sign, e, m = bits >> (exponent + mantissa) & 1, bits >> mantissa & ((1 << exponent) - 1), bits & ((1 << mantissa) - 1)
    bias = (1 << (exponent - 1)) - 1
    size = (m / (1 << mantissa)) * 2.0 ** (1 - bias) if e == 0 else (1 + m / (1 << mantissa)) * 2.0 ** (e - bias)
    return -size if sign else size


@pytest.mark.parametrize("name", list(TYPES))
def test_every_number_of_a_narrow_type_is_decoded_exactly(name: str) -> None:
    d = DTYPES[name]
    raw = np.arange(1 << d.bits, dtype=np.uint8)
    found = decode(raw, name)
    for bits, x in zip(raw.tolist(), found.tolist(), strict=True):
        if abs(value(bits, d.exponent_bits, d.mantissa_bits)) <= d.max_finite:
            assert x == value(bits, d.exponent_bits, d.mantissa_bits), bits
        else:
            assert not np.isfinite(x), bits
    assert np.nanmax(found[np.isfinite(found)]) == d.max_finite


def test_scales_are_powers_of_two_or_unsigned_and_255_is_no_number() -> None:
    raw = np.arange(256, dtype=np.uint8)
    powers = decoded(raw, "ue8m0")
    assert (powers[:255] == 2.0 ** (np.arange(255.0) - 127)).all() and np.isnan(powers[255])
    unsigned = decoded(raw, "e4m3")
    assert np.array_equal(unsigned[:128], unsigned[128:], equal_nan=True) and np.nanmin(unsigned) == 0 and np.nanmax(unsigned) == 448


def test_scales_at_the_ends_of_their_range_do_not_overflow_on_the_way() -> None:
    one = np.ones((1, 32), np.float32)
    assert multiplied(None, one, one, 32, np.array([[2.0**127]]), np.array([[2.0**-127]]), 32) == 32


def test_fp4_is_packed_two_a_byte_the_lower_index_in_the_low_half() -> None:
    text = '@cake.schedule(target="sm_120a")\ndef f(lm, X: LM.gmem1d[LM.f32]):\n    pool = lm.smem(128)\n    v = pool.view(offset=0, shape=(4, 64), dtype=lm.e2m1, swizzle="32b")\n    work = lm.role(warps=[0])\n    with work:\n        pass\n'
    place = Placement(program(text, "sm_120a"))
    pool, whole = Pool(128), place.rectangle("v", 0, 0, 4, 0, 64)
    raw = (np.arange(256) % 16).astype(np.uint8).reshape(4, 64)
    pool.write_async(whole, raw)
    assert (pool.read(whole) == raw).all() and (pool.data[1][:8] == [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]).all()
    odd = place.rectangle("v", 0, 1, 1, 3, 1)
    pool.write(odd, np.array([[9]], np.uint8), 1)
    raw[1, 3] = 9
    assert (pool.read(whole) == raw).all() and pool.stale(whole)
    pool.fence(1)
    assert (pool.read_async(whole) == raw).all()


@pytest.mark.parametrize(("left", "right"), [("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e2m3", "e2m3"), ("e3m2", "e2m3"), ("e4m3", "e3m2"), ("e2m1", "e2m1")])
def test_every_pair_of_operand_types_is_multiplied_in_fragments(left: str, right: str) -> None:
    k = 64 if left == "e2m1" else 32
    text = f'''
@cake.schedule(target="sm_120a")
def f(lm, A: LM.gmem2d[LM.{left}], B: LM.gmem2d[LM.{right}], SA: LM.gmem1d[LM.u32], SB: LM.gmem1d[LM.u32], C: LM.gmem2d[LM.f32]):
    work = lm.role(warps=range(0, 4))
    with work:
        acc = lm.frag(shape=(32, 16), dtype=lm.f32, form="acc", warps=(2, 2), init=1.0)
        a = lm.load(A, coords=(0, 0), shape=(32, {k}), form="a", like=acc)
        b = lm.load(B, coords=(0, 0), shape=(16, {k}), form="b", like=acc)
        wa = lm.load(SA, coords=(0,), shape=(32,), form="rowvec", like=a)
        wb = lm.load(SB, coords=(0,), shape=(16,), form="rowvec", like=b)
        lm.mma(acc, a, b, scale_a=lm.scales(wa, block=32, dtype=lm.ue8m0, layout="frag_row", first=2), scale_b=lm.scales(wb, block=32, dtype=lm.ue8m0, layout="frag_row", first=2))
        lm.store(C, acc, coords=(0, 0))
'''
    rng = np.random.default_rng(3)
    draw = lambda rows, t: rng.integers(0, 1 << DTYPES[t].bits, (rows, k)).astype(np.uint8)  # noqa: E731
    a, b = draw(32, left), draw(16, right)
    for x, t in ((a, left), (b, right)):
        x[~np.isfinite(decode(x, t))] = 0
    sa, sb = (np.exp2(rng.integers(-4, 5, (n, 4))).astype(ml_dtypes.float8_e8m0fnu) for n in (32, 16))
    a, b = a.view(TYPES[left]), b.view(TYPES[right])
    r = simulate(program(text, "sm_120a"), {"A": a, "B": b, "SA": words(sa)[0], "SB": words(sb)[0], "C": np.zeros((32, 16), np.float32)}, {})
    assert r.ok, r.faults
    used = slice(2, 2 + k // 32)
    want = 1 + scaled(a, sa[:, used]) @ scaled(b, sb[:, used]).T
    assert np.allclose(r.outputs["C"], want, rtol=1e-6, atol=1e-6 * np.abs(want).max())


def run(text: str, **tensors: np.ndarray) -> SimResult:
    return simulate(program(text, "sm_100a"), {"C": np.zeros((128, 128), np.float32), **tensors}, {"M": 128, "N": 128, "K": 128, "MB": 1, "NB": 1, "KB": 1})


def test_each_quarter_of_the_lanes_reads_its_own_copy_of_the_scales() -> None:
    """Scales that ordinary stores bring to one quarter only leave the others what they had."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (128, 128)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    s = np.exp2(rng.integers(-2, 3, (128, 4))).astype(ml_dtypes.float8_e8m0fnu)
    packed = atoms(s)
    r = run(BLOCK_SCALED, A=a, B=b, SA=packed, SB=packed)
    assert r.ok and np.array_equal(r.outputs["C"], scaled(a, s) @ scaled(b, s).T)
    lanes = edit(BLOCK_SCALED, ('SB: LM.tma4d[LM.ue8m0, "NB", "KB", 32, 16]', "SB: LM.tma2d[LM.ue8m0, 128, 16]"), ("sb.tma_load(SB, coords=(0, 0, k, 0)", "sb.tma_load(SB, coords=(0, 0)"),
                 ("pool = lm.smem(67584)", "pool = lm.smem(73728)"), ("offset=66560, shape=(32, 16)", "offset=67584, shape=(128, 16)"))  # fmt: skip
    given = np.tile(packed[0, 0].view(np.uint8), (4, 1))
    given[32:64] += 1  # the second quarter doubles every scale of B
    r = run(lanes, A=a, B=b, SA=packed, SB=given.view(ml_dtypes.float8_e8m0fnu))
    twice = np.where((np.arange(128) // 32 == 1)[:, None], 2.0, 1.0)
    assert r.ok, r.faults
    assert np.array_equal(r.outputs["C"], twice * (scaled(a, s) @ scaled(b, s).T))


def test_scales_that_nothing_was_written_to_make_nothing_of_the_result() -> None:
    a = np.ones((128, 128), ml_dtypes.float8_e4m3fn)
    ones = atoms(np.ones((128, 4), ml_dtypes.float8_e8m0fnu))
    for line in ("            lm.tmem_copy(ta, sa[s])\n", "            lm.tmem_copy(tb, sb[s])\n"):
        r = run(edit(BLOCK_SCALED, (line, "")), A=a, B=a, SA=ones, SB=ones)
        assert not r.ok
        assert any("scales are read from" in str(f.related) or "undefined data" in f.message for f in r.faults)
