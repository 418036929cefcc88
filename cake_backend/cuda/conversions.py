"""Conversions between the packed registers of narrow types and the values they are computed on."""

from __future__ import annotations

from cake_backend.cuda.context import Context
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.preamble import Device
from cake_ir.span import Span

PACK_BF16 = Device(
    "pack_bf16",
    'DEVICE u32 pack_bf16(float lo, float hi) { u32 r; asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(lo), "f"(hi)); return r; }',
)
PACK_F16 = Device(
    "pack_f16",
    'DEVICE u32 pack_f16(float lo, float hi) { u32 r; asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(lo), "f"(hi)); return r; }',
)
UNPACK_BF16 = Device(
    "unpack_bf16",
    "DEVICE float unpack_bf16(u32 x, int i) { return __uint_as_float(i ? x & 0xffff0000u : x << 16); }",
)
UNPACK_F16 = Device(
    "unpack_f16",
    """
DEVICE float unpack_f16(u32 x, int i) {
  float r;
  asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.f32.f16 %0, lo; }" : "=f"(r) : "r"(i ? x >> 16 : x));
  return r;
}""",
)
ROUND_BF16 = Device("round_bf16", "DEVICE float round_bf16(float x) { return __uint_as_float(pack_bf16(x, 0.0f) << 16); }", (PACK_BF16,))
ROUND_F16 = Device("round_f16", "DEVICE float round_f16(float x) { return unpack_f16(pack_f16(x, 0.0f), 0); }", (PACK_F16, UNPACK_F16))


def _pack_fp8(name: str) -> Device:
    return Device(
        f"pack_{name}",
        f"""
DEVICE u32 pack_{name}(float a, float b, float c, float d) {{
  u32 r;
  asm("{{ .reg .b16 lo, hi; cvt.rn.satfinite.{name}x2.f32 lo, %2, %1; cvt.rn.satfinite.{name}x2.f32 hi, %4, %3; mov.b32 %0, {{lo, hi}}; }}"
      : "=r"(r) : "f"(a), "f"(b), "f"(c), "f"(d));
  return r;
}}""",
    )


def _unpack_fp8(name: str) -> Device:
    return Device(
        f"unpack_{name}",
        f"""
DEVICE float unpack_{name}(u32 x, int i) {{
  u32 pair;
  asm("{{ .reg .b16 v; .reg .b32 t; mov.b32 {{v, _}}, %1; cvt.rn.f16x2.{name}x2 %0, v; }}" : "=r"(pair) : "r"(x >> (8 * i)));
  return unpack_f16(pair, 0);
}}""",
        (UNPACK_F16,),
    )


PACK = {"bf16": PACK_BF16, "f16": PACK_F16, "e4m3": _pack_fp8("e4m3"), "e5m2": _pack_fp8("e5m2")}
UNPACK = {"bf16": UNPACK_BF16, "f16": UNPACK_F16, "e4m3": _unpack_fp8("e4m3"), "e5m2": _unpack_fp8("e5m2")}

PACK_I8 = Device(
    "pack_i8",
    "DEVICE u32 pack_i8(int a, int b, int c, int d) { return (a & 0xff) | (b & 0xff) << 8 | (c & 0xff) << 16 | (u32)d << 24; }",
)
UNPACK_I8 = Device("unpack_i8", "DEVICE int unpack_i8(u32 x, int i) { return (int)(x << (24 - 8 * i)) >> 24; }")
UNPACK_U8 = Device("unpack_u8", "DEVICE int unpack_u8(u32 x, int i) { return (int)(x >> (8 * i)) & 0xff; }")
PACK_UE8M0 = Device(
    "pack_ue8m0",
    """
DEVICE u32 pack_ue8m0(float a, float b, float c, float d) {  // the exponents of powers of two
  return __float_as_uint(a) >> 23 | __float_as_uint(b) >> 23 << 8 | __float_as_uint(c) >> 23 << 16 | __float_as_uint(d) >> 23 << 24;
}""",
)
UNPACK_UE8M0 = Device("unpack_ue8m0", "DEVICE float unpack_ue8m0(u32 x, int i) { return __uint_as_float((x >> (8 * i) & 0xffu) << 23); }")
PACK |= {"i8": PACK_I8, "u8": PACK_I8, "ue8m0": PACK_UE8M0}
UNPACK |= {"i8": UNPACK_I8, "u8": UNPACK_U8, "ue8m0": UNPACK_UE8M0}


def pack(ctx: Context, dtype: str, values: list[str], span: Span) -> str:
    """One 32-bit register from the values of its elements, lowest first, rounding each to `dtype`."""
    device = PACK.get(dtype)
    if device is None:
        return not_lowered(f"packing of {dtype} fragments", span)
    return f"{ctx.use(device)}({', '.join(values)})"


def unpack(ctx: Context, dtype: str, word: str, sub: str, span: Span) -> str:
    """The value of element `sub` of a 32-bit register."""
    device = UNPACK.get(dtype)
    if device is None:
        return not_lowered(f"unpacking of {dtype} fragments", span)
    return f"{ctx.use(device)}({word}, {sub})"


def rounded(ctx: Context, dtype: str, value: str, span: Span) -> str:
    """`value` rounded to `dtype` and computed on further."""
    if dtype == "bf16":
        return f"{ctx.use(ROUND_BF16)}({value})"
    if dtype == "f16":
        return f"{ctx.use(ROUND_F16)}({value})"
    if dtype in ("e4m3", "e5m2"):
        return unpack(ctx, dtype, pack(ctx, dtype, [value, "0.0f", "0.0f", "0.0f"], span), "0", span)
    return value


ROUND_TF32 = Device(
    "round_tf32",
    'DEVICE float round_tf32(float x) { u32 r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x)); return __uint_as_float(r); }',
)
TRUNCATE_BF16 = Device("truncate_bf16", "DEVICE float truncate_bf16(float x) { return __uint_as_float(__float_as_uint(x) & 0xffff0000u); }")
TRUNCATE_F16 = Device(
    "truncate_f16",
    'DEVICE float truncate_f16(float x) { float r; asm("{ .reg .b16 h; cvt.rz.f16.f32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(r) : "f"(x)); return r; }',
)
_TO_INT = {"i32": "int", "u32": "uint", "i64": "ll", "u64": "ull"}
_TO_FLOAT = {"u32": "__uint2float_rn", "i64": "__ll2float_rn", "u64": "__ull2float_rn"}
_ROUND = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}


def converted(ctx: Context, have: str, want: str, value: str, round_: str, span: Span) -> str:
    """C text of a value of dtype `have` converted to `want` by a cast."""
    if have == want:
        return value
    integer = ("i32", "u32", "i64", "u64", "i8", "u8", "bool")
    if want == "f32" or (want in ("bf16", "f16") and have in integer):
        text = f"{_TO_FLOAT.get(have, '__int2float_rn')}({value if have in _TO_FLOAT else f'(int)({value})'})" if have in integer else value
        return text if want == "f32" else rounded(ctx, want, text, span)
    if round_ == "rz" and want in ("bf16", "f16"):
        return f"{ctx.use(TRUNCATE_BF16 if want == 'bf16' else TRUNCATE_F16)}({value})"
    if want == "tf32":
        return f"{ctx.use(ROUND_TF32)}({value})"
    if want in ("bf16", "f16", "e4m3", "e5m2"):
        return rounded(ctx, want, value, span)
    if want in ("i32", "u32", "i64", "u64"):
        ctype = {"i32": "int"}.get(want, want)
        return f"({ctype})({value})" if have in integer else f"__float2{_TO_INT[want]}_{_ROUND[round_]}({value})"
    if want in ("i8", "u8") and have not in integer:
        low, high = (-128, 127) if want == "i8" else (0, 255)
        return f"min(max(__float2int_{_ROUND[round_]}({value}), {low}), {high})"
    if want in ("i8", "u8"):
        return f"(int)({want})({value})"
    return not_lowered(f"a cast from {have} to {want}", span)
