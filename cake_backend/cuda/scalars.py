"""Uniform expressions as C text."""

from __future__ import annotations

from collections.abc import Callable

from cake_backend.cuda.context import Context, Scalar, Slot, Tile
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.preamble import CLUSTER_RANK, Device
from cake_ir.derive.clusters import axis_of
from cake_ir.program import Expr
from cake_ir.types import ScalarT

CTYPE = {"i32": "int", "u32": "u32", "i64": "i64", "u64": "u64", "bool": "bool", "f32": "float", "tf32": "float",
         "f16": "float", "bf16": "float", "e4m3": "float", "e5m2": "float", "ue8m0": "float", "i8": "int", "u8": "int"}  # fmt: skip
"""The C type in which a value of each dtype is computed on: narrow floats are exact in float, narrow integers in int."""

CDIV = Device("cdiv", "DEVICE int cdiv(int a, int b) { const int q = a / b; return q + (a % b > 0); }  // b > 0")
FLOOR_DIV = Device(
    "floor_div", "DEVICE int floor_div(int a, int b) { const int q = a / b, r = a % b; return q - (r != 0 && (r < 0) != (b < 0)); }"
)
FLOOR_MOD = Device(
    "floor_mod", "DEVICE int floor_mod(int a, int b) { const int r = a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; }"
)

_INFIX = {"add": "+", "sub": "-", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "&&", "or": "||",
          "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>"}  # fmt: skip
_OPPOSITE = {"eq": "ne", "ne": "eq"}  # the others are not opposites where a NaN is compared
_BINDS = {"*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7, "==": 6, "!=": 6, "&": 5, "^": 4,
          "|": 3, "&&": 2, "||": 1}  # fmt: skip
ATOM = 20
Text = tuple[str, int]


def number(value: object, ctype: str) -> str:
    """A literal of a C type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if ctype == "float":
        v = float(value)  # type: ignore[arg-type]  # constants of a numeric type are numbers
        if v != v:
            return "__int_as_float(0x7fffffff)"
        if v in (float("inf"), float("-inf")):
            return "__int_as_float(0x7f800000)" if v > 0 else "__int_as_float(0xff800000)"
        text = repr(v)
        return f"{text}f" if "." in text or "e" in text else f"{text}.0f"
    n = int(value)  # type: ignore[call-overload]  # a constant is a number
    if ctype == "int" and n == -(2**31):
        return "(-2147483647 - 1)"
    return f"{n}{ {'u32': 'u', 'i64': 'll', 'u64': 'ull'}.get(ctype, '') }"


def wrap(text: Text, level: int) -> str:
    """Parenthesise unless it binds tighter than `level`."""
    return text[0] if text[1] >= level else f"({text[0]})"


def infix(op: str, a: Text, b: Text) -> Text:
    """`a op b` with as few parentheses as readers need."""
    level = _BINDS[op]
    left = wrap(a, level)
    right = wrap(b, level + 1)
    if op in ("&", "|", "^", "<<", ">>"):  # nobody remembers these against arithmetic
        left, right = wrap(a, ATOM), wrap(b, ATOM)
    return f"{left} {op} {right}", level


def scalar(ctx: Context, e: Expr) -> str:
    """C text of a uniform expression, to stand alone."""
    return _text(ctx, e)[0]


def factor(ctx: Context, e: Expr) -> str:
    """C text of a uniform expression, to stand as an operand of any operator."""
    return wrap(_text(ctx, e), ATOM)


def constant(e: Expr) -> int | None:
    """The integer that an expression is at compile time, or None."""
    if e.op == "const":
        v = e.attrs["value"]
        return v if isinstance(v, int) and not isinstance(v, bool) else None
    return None


def scaled(ctx: Context, e: Expr, factor_: int, suffix: str = "u") -> str:
    """`factor * e`, folded where `e` is constant; empty for zero."""
    value = constant(e)
    if value is not None:
        return f"{value * factor_}{suffix}" if value * factor_ else ""
    if e.op == "mul" and (known := [a for a in e.args if constant(a) is not None]):
        other = e.args[1] if e.args[0] is known[0] else e.args[0]
        return scaled(ctx, other, factor_ * (constant(known[0]) or 0), suffix)
    if e.op == "add" and constant(e.args[1]) is not None:
        return plus(scaled(ctx, e.args[0], factor_, suffix), scaled(ctx, e.args[1], factor_, suffix))
    text = factor(ctx, e)
    return text if factor_ == 1 else f"{factor_}{suffix} * {text}"


def plus(*terms: str) -> str:
    """The sum of the terms that are not empty."""
    return " + ".join(t for t in terms if t) or "0u"


def dtype_of(e: Expr) -> str:
    return e.type.dtype if isinstance(e.type, ScalarT) else "i32"


def _text(ctx: Context, e: Expr) -> Text:
    handler = _HANDLERS.get(e.op)
    if handler is not None:
        return handler(ctx, e)
    ctype = CTYPE.get(dtype_of(e), "int")
    if e.op in _INFIX:
        if ctype == "float" and e.op in ("add", "sub"):
            return _float_sum(ctx, e)
        return infix(_INFIX[e.op], _text(ctx, e.args[0]), _text(ctx, e.args[1]))
    return not_lowered(f"`{e.op}` of a uniform value", e.span)


def _float_sum(ctx: Context, e: Expr) -> Text:
    """a*b + c is one rounding; which product is fused is the language's choice, not the compiler's."""
    a, b = e.args
    sign = "-" if e.op == "sub" else ""
    if a.op == "mul":
        x, y = (_text(ctx, v)[0] for v in a.args)
        c = _text(ctx, b)
        return f"__fmaf_rn({x}, {y}, {sign}{wrap(c, ATOM) if sign else c[0]})", ATOM
    if b.op == "mul":
        x, y = _text(ctx, b.args[0]), _text(ctx, b.args[1])[0]
        return f"__fmaf_rn({sign}{wrap(x, ATOM) if sign else x[0]}, {y}, {_text(ctx, a)[0]})", ATOM
    return infix("+" if e.op == "add" else "-", _text(ctx, a), _text(ctx, b))


def _const(ctx: Context, e: Expr) -> Text:
    text = number(e.attrs["value"], CTYPE.get(dtype_of(e), "int"))
    return text, 11 if text.startswith("-") else ATOM


def _name(ctx: Context, e: Expr) -> Text:
    bound = ctx.lookup(str(e.attrs["name"]))
    if isinstance(bound, Scalar | Slot):
        return bound.text, ATOM
    return not_lowered(f"`{e.attrs['name']}` as a uniform value", e.span)


def _field(ctx: Context, e: Expr) -> Text:
    tile = ctx.lookup(str(e.args[0].attrs["name"]))
    assert isinstance(tile, Tile)
    return tile.fields[str(e.attrs["name"])], ATOM


def _mul(ctx: Context, e: Expr) -> Text:
    a, b = _text(ctx, e.args[0]), _text(ctx, e.args[1])
    if CTYPE.get(dtype_of(e)) == "float":
        return f"__fmul_rn({a[0]}, {b[0]})", ATOM
    return infix("*", a, b)


def _div(ctx: Context, e: Expr) -> Text:
    from cake_backend.cuda.arithmetic import RCP

    if e.attrs.get("exact"):
        return f"__fdiv_rn({_text(ctx, e.args[0])[0]}, {_text(ctx, e.args[1])[0]})", ATOM
    return f"__fmul_rn({_text(ctx, e.args[0])[0]}, {ctx.use(RCP)}({_text(ctx, e.args[1])[0]}))", ATOM


def non_negative(e: Expr) -> bool:
    """Whether a uniform integer cannot be negative, by its form alone."""
    if e.op == "const":
        v = e.attrs["value"]
        return isinstance(v, int) and v >= 0
    if e.op in ("field", "role_index", "slot_index", "cta_rank", "cluster_size", "cta_id", "extent"):
        return True
    if e.op in ("add", "mul", "floordiv", "mod", "min", "cdiv", "shr", "bitand"):
        return all(non_negative(a) for a in e.args)
    return False


def _floordiv(ctx: Context, e: Expr) -> Text:
    a, b = e.args
    if non_negative(a) and non_negative(b):
        return infix("/", _text(ctx, a), _text(ctx, b))
    return f"{ctx.use(FLOOR_DIV)}({scalar(ctx, a)}, {scalar(ctx, b)})", ATOM


def _mod(ctx: Context, e: Expr) -> Text:
    a, b = e.args
    if non_negative(a) and non_negative(b):
        return infix("%", _text(ctx, a), _text(ctx, b))
    return f"{ctx.use(FLOOR_MOD)}({scalar(ctx, a)}, {scalar(ctx, b)})", ATOM


def _cdiv(ctx: Context, e: Expr) -> Text:
    return f"{ctx.use(CDIV)}({scalar(ctx, e.args[0])}, {scalar(ctx, e.args[1])})", ATOM


def _neg(ctx: Context, e: Expr) -> Text:
    return f"-{factor(ctx, e.args[0])}", 11


def _not(ctx: Context, e: Expr) -> Text:
    inner = e.args[0]
    if inner.op in _OPPOSITE:
        return _text(ctx, Expr(_OPPOSITE[inner.op], inner.args, inner.attrs, inner.type, inner.span))
    return f"!{factor(ctx, e.args[0])}", 11


def _extremum(name: str) -> Callable[[Context, Expr], Text]:
    def text(ctx: Context, e: Expr) -> Text:
        a, b = scalar(ctx, e.args[0]), scalar(ctx, e.args[1])
        return f"{'f' + name + 'f' if CTYPE.get(dtype_of(e)) == 'float' else name}({a}, {b})", ATOM

    return text


def _select(ctx: Context, e: Expr) -> Text:
    c, a, b = (factor(ctx, x) for x in e.args)
    return f"{c} ? {a} : {b}", 0


def _role_index(ctx: Context, e: Expr) -> Text:
    return ctx.role.index, ATOM


def _slot_index(ctx: Context, e: Expr) -> Text:
    from cake_backend.cuda.rings import slot_index, stages_of

    return f"(int)({slot_index(ctx, e.args[0])})" if stages_of(ctx, e.args[0]) > 1 else "0", ATOM


def _cta_rank(ctx: Context, e: Expr) -> Text:
    x, y = ctx.program.launch.cluster
    name = e.attrs.get("axis")
    rank = f"(int){ctx.use(CLUSTER_RANK)}()"
    if x * y == 1:
        return "0", ATOM
    if name is None:
        return rank, ATOM
    axis = axis_of(ctx.program, str(name))
    if x == 1 or y == 1:
        return (rank, ATOM) if (x, y)[axis] > 1 else ("0", ATOM)
    return (f"{rank} % {x}", 10) if axis == 0 else (f"{rank} / {x}", 10)


def _cluster_size(ctx: Context, e: Expr) -> Text:
    x, y = ctx.program.launch.cluster
    name = e.attrs.get("axis")
    return str(x * y if name is None else (x, y)[axis_of(ctx.program, str(name))]), ATOM


def _extent(ctx: Context, e: Expr) -> Text:
    from cake_backend.cuda.globals import extent

    return extent(ctx, str(e.attrs["tensor"]), int(e.attrs["dim"])), ATOM  # type: ignore[call-overload]  # a dimension is an int


def _cta_id(ctx: Context, e: Expr) -> Text:
    return "(int)blockIdx.x", ATOM


def _cast(ctx: Context, e: Expr) -> Text:
    have, want = dtype_of(e.args[0]), str(e.attrs.get("dtype") or dtype_of(e))
    text = scalar(ctx, e.args[0])
    if CTYPE.get(have) == CTYPE.get(want) and have == want:
        return text, 0
    if want == "f32" and CTYPE[have] == "int":
        return f"__int2float_rn({text})", ATOM
    if want == "f32" and CTYPE[have] == "float":
        return text, 0
    if want in ("i32", "i64", "u32", "u64") and CTYPE[have] != "float":
        return f"({CTYPE[want]})({text})", ATOM
    from cake_backend.cuda.conversions import converted

    return converted(ctx, have, want, text, str(e.attrs.get("round") or "rn"), e.span), ATOM


def _fma(ctx: Context, e: Expr) -> Text:
    a, b, c = (scalar(ctx, x) for x in e.args)
    return f"__fmaf_rn({a}, {b}, {c})", ATOM


def _unary(ctx: Context, e: Expr) -> Text:
    from cake_backend.cuda.arithmetic import unary_text

    return unary_text(ctx, e.op, scalar(ctx, e.args[0]), e.span), ATOM


_HANDLERS: dict[str, Callable[[Context, Expr], Text]] = {
    "const": _const, "param": _name, "var": _name, "field": _field, "mul": _mul, "div": _div, "floordiv": _floordiv, "mod": _mod,
    "cdiv": _cdiv, "neg": _neg, "not": _not, "min": _extremum("min"), "max": _extremum("max"), "select": _select, "where": _select,
    "role_index": _role_index, "slot_index": _slot_index, "cta_rank": _cta_rank, "cluster_size": _cluster_size, "cta_id": _cta_id, "extent": _extent,
    "cast": _cast, "fma": _fma, **dict.fromkeys("exp2 exp2_fma log2 exp log sqrt rsqrt rcp tanh sigmoid silu gelu erf abs".split(), _unary),
}  # fmt: skip
