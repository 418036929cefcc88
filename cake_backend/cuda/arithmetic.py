"""Element-by-element arithmetic as C text: what each operation of the language expands to on float, int and bool values."""

from __future__ import annotations

from cake_backend.cuda.context import Context
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.preamble import Device
from cake_backend.cuda.scalars import FLOOR_DIV as DIV
from cake_backend.cuda.scalars import FLOOR_MOD as MOD
from cake_ir.ops.elementwise import EXP2_POLYNOMIAL
from cake_ir.span import Span


def _approx(name: str, ptx: str) -> Device:
    return Device(name, f'DEVICE float {name}(float x) {{ float r; asm("{ptx} %0, %1;" : "=f"(r) : "f"(x)); return r; }}')


EXP2 = _approx("exp2_approx", "ex2.approx.ftz.f32")
C3, C2, C1, C0 = EXP2_POLYNOMIAL
EXP2_FMA = Device(
    "exp2_fma",
    f"""
DEVICE float exp2_fma(float x) {{
  const float low = fmaxf(x, -126.0f), whole = low + 12582912.0f, part = low - (whole - 12582912.0f);  // 1.5 * 2^23: the sum rounds to an integer
  const float power = __fmaf_rn(__fmaf_rn(__fmaf_rn({C3!r}f, part, {C2!r}f), part, {C1!r}f), part, {C0!r}f);
  return __int_as_float((__float_as_int(whole) << 23) + __float_as_int(power));
}}""",
)
LOG2 = _approx("log2_approx", "lg2.approx.ftz.f32")
RCP = _approx("rcp_approx", "rcp.approx.ftz.f32")
RSQRT = _approx("rsqrt_approx", "rsqrt.approx.ftz.f32")
SQRT = _approx("sqrt_approx", "sqrt.approx.ftz.f32")
TANH = _approx("tanh_approx", "tanh.approx.f32")
SIGMOID = Device("sigmoid", "DEVICE float sigmoid(float x) { return rcp_approx(1.0f + exp2_approx(__fmul_rn(x, -1.4426950408889634f))); }", (EXP2, RCP))
SILU = Device("silu", "DEVICE float silu(float x) { return __fmul_rn(x, sigmoid(x)); }", (SIGMOID,))
GELU = Device(
    "gelu_tanh",
    """
DEVICE float gelu_tanh(float x) {
  const float inner = __fmul_rn(0.7978845608028654f, __fmaf_rn(__fmul_rn(0.044715f, x), __fmul_rn(x, x), x));
  return __fmul_rn(__fmul_rn(0.5f, x), 1.0f + tanh_approx(inner));
}""",
    (TANH,),
)

_DEVICES = {"exp2": EXP2, "exp2_fma": EXP2_FMA, "log2": LOG2, "rcp": RCP, "rsqrt": RSQRT, "sqrt": SQRT, "tanh": TANH, "sigmoid": SIGMOID, "silu": SILU, "gelu": GELU}


def unary_text(ctx: Context, op: str, x: str, span: Span, *, integer: bool = False, dtype: str = "f32") -> str:
    """`op` of one value; `x` may be any C expression. The result is operand-safe."""
    if op in _DEVICES:
        return f"{ctx.use(_DEVICES[op])}({x})"
    if op == "exp":
        return f"{ctx.use(EXP2)}(__fmul_rn({x}, 1.4426950408889634f))"
    if op == "log":
        return f"__fmul_rn({ctx.use(LOG2)}({x}), 0.6931471805599453f)"
    if op == "abs":
        return (operand(x) if dtype in ("u32", "u64", "u8", "bool") else f"abs({x})") if integer else f"fabsf({x})"
    if op == "erf":
        return f"erff({x})"
    if op == "neg":
        return f"(-{x})" if is_operand(x) else f"(-({x}))"
    if op == "not":
        return f"(!{x})" if is_operand(x) else f"(!({x}))"
    return not_lowered(f"`{op}` on fragments", span)


def is_operand(text: str) -> bool:
    """Whether a text needs no parentheses as an operand: a name, a number, an indexed array, one call, or parenthesised already."""
    depth = 0
    for i, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
            if depth == 0 and i != len(text) - 1:
                return False
        elif depth == 0 and not (c.isalnum() or c in "_."):
            return False
    return True


def operand(text: str) -> str:
    """`text`, parenthesised unless it can stand next to any operator."""
    return text if is_operand(text) else f"({text})"


FLOOR_DIV = (DIV, Device("floor_div64", "DEVICE i64 floor_div64(i64 a, i64 b) { const i64 q = a / b, r = a % b; return q - (r != 0 && (r < 0) != (b < 0)); }"))
FLOOR_MOD = (MOD, Device("floor_mod64", "DEVICE i64 floor_mod64(i64 a, i64 b) { const i64 r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; }"))
"""Division of signed integers that rounds down: of 32 bits, of 64."""

_FLOAT = {"add": "{} + {}", "sub": "{} - {}", "max": "fmaxf({}, {})", "min": "fminf({}, {})", "mul": "__fmul_rn({}, {})",
          "div_rn": "__fdiv_rn({}, {})"}
_INT = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "max": "max({}, {})", "min": "min({}, {})", "bitand": "{} & {}", "bitor": "{} | {}", "bitxor": "{} ^ {}", "shl": "{} << {}", "shr": "{} >> {}"}  # fmt: skip
_ANY = {"lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}", "eq": "{} == {}", "ne": "{} != {}",
        "and": "{} && {}", "or": "{} || {}"}  # fmt: skip


def floored(ctx: Context, op: str, x: str, y: str, dtype: str, divisor: object) -> str:
    """`//` and `%` of integers, rounded down as uniform scalars are: by a shift or a mask where the divisor is a power of two."""
    if isinstance(divisor, int) and divisor > 0 and not divisor & (divisor - 1):
        return f"({operand(x)} >> {divisor.bit_length() - 1})" if op == "floordiv" else f"({operand(x)} & {divisor - 1})"
    if dtype in ("u8", "u32", "u64"):
        return f"({operand(x)} {'/' if op == 'floordiv' else '%'} {operand(y)})"
    return f"{ctx.use((FLOOR_DIV if op == 'floordiv' else FLOOR_MOD)[dtype == 'i64'])}({x}, {y})"


def binary_text(ctx: Context, op: str, x: str, y: str, span: Span, *, kind: str) -> str:
    """`x op y` on values of kind `float`, `int` or `bool`, parenthesised where it is not one call."""
    if op == "div" and kind == "float":
        return f"__fmul_rn({x}, {ctx.use(RCP)}({y}))"
    if kind == "bool" and op in ("bitand", "bitor", "bitxor"):
        op = {"bitand": "and", "bitor": "or", "bitxor": "ne"}[op]
    form = _ANY.get(op) or (_FLOAT if kind == "float" else _INT).get(op)
    if form is None:
        return not_lowered(f"`{op}` on fragments", span)
    if form.startswith("{"):
        return f"({form.format(operand(x), operand(y))})"
    return form.format(x, y)
