"""`lm.amax_scale`: the scale of each block of elements, from its absolute maximum."""

from __future__ import annotations

from contextlib import nullcontext

from cake_backend.cuda import reduce
from cake_backend.cuda.context import Context, Place
from cake_backend.cuda.preamble import Device
from cake_ir.program import Expr
from cake_ir.quantising import largest, least
from cake_ir.types import FragT


def _scale(kind: str, dtype: str) -> Device:
    """The scale of one block. An absolute maximum below `least` counts as that, so that the scale is never zero nor subnormal."""
    name, floor = f"amax_scale_{kind}_{dtype}", f"__int_as_float(0x{least(dtype):08x})"
    if kind == "f32":
        return Device(name, f"DEVICE float {name}(float amax) {{ return __fmul_rn(fmaxf(amax, {floor}), {1 / largest(dtype)!r}f); }}")
    # The smallest power of two that is not below amax / largest: both largest numbers are 1.75 times a power of two.
    power = int(largest(dtype) / 1.75).bit_length() - 1
    return Device(
        name,
        f"""
DEVICE float {name}(float amax) {{
  return __uint_as_float(((__float_as_uint(fmaxf(amax, {floor})) + 0x1fffffu) & 0x7f800000u) - {power}u * 0x800000u);
}}""",
    )


def amax_scale_into(ctx: Context, target: Place, e: Expr) -> None:
    """The absolute maximum of each block, then its scale."""
    x = e.args[0]
    t = x.type
    assert isinstance(t, FragT)
    maximum = Expr("reduce", (Expr("abs", (x,), {}, t, x.span),), {"op": "max", "axis": e.attrs["axis"], "partial": False}, target.type, e.span)
    reduce.reduce_into(ctx, target, maximum)
    device = ctx.use(_scale(str(e.attrs["kind"]), str(e.attrs["dtype"])))
    many = target.count > 1
    with ctx.out.unrolled("i_", target.count) if many else nullcontext():
        at = f"{target.name}[{'i_' if many else '0'}]"
        ctx.out.line(f"{at} = {device}({at});")
