"""Pure element-by-element operations on fragments, and their types: broadcast of row vectors, column vectors and scalars."""

from __future__ import annotations

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault, FaultError
from cake_ir.forms_table import cast_form, depth
from cake_ir.ops.spec import Call, OpSpec, P
from cake_ir.ops.vectors import COLUMNS_OF_VEC, follows, owners
from cake_ir.program import Expr
from cake_ir.span import Span
from cake_ir.types import FragT, ScalarT, Type

ARITH = frozenset("add sub mul div floordiv mod min max bitand bitor bitxor shl shr".split())
COMPARE = frozenset("lt le gt ge eq ne".split())
LOGIC = frozenset("and or".split())
UNARY = frozenset("neg not abs exp2 exp2_fma log2 exp log sqrt rsqrt rcp tanh sigmoid silu gelu erf".split())
EXP2_POLYNOMIAL = (0.05517168343067169, 0.2426111251115799, 0.6932609677314758, 0.9999280571937561)
"""2^x on [-0.5, 0.5], the highest power first: `lm.exp2_fma`, within 7.5e-5 relative."""

_WHOLE = frozenset("floordiv mod bitand bitor bitxor shl shr".split())
"""Operations on whole numbers only."""

_OF_FLOATS = (UNARY - {"neg", "not", "abs"}) | {"div"}
"""Operations on floating point only."""

_RANK = {"scalar": 0, "rowvec": 1, "colvec": 1}


def broadcast(name: str, args: tuple[Expr, ...], span: Span) -> FragT:
    """The fragment type that `args` share once vectors and scalars are broadcast; at least one of them is a fragment.

    Raises D002 where forms disagree, D001 where shapes do, D003 where dtypes do, D007 where an unfinished partial meets an
    operation that does not commute with its reduction.
    """
    frags = [a for a in args if isinstance(a.type, FragT)]
    best = frags[0]
    for a in frags[1:]:
        if _RANK.get(a.type.form, 2) > _RANK.get(best.type.form, 2):  # type: ignore[union-attr]  # fragments only
            best = a
    t = best.type
    assert isinstance(t, FragT)
    for a in frags:
        _check_pair(name, best, t, a, span)
    if t.form in ("rowvec", "colvec") and any(f.type.form in ("rowvec", "colvec") and f.type.form != t.form for f in frags):  # type: ignore[union-attr]  # fragments only
        rows = max(f.type.rows for f in frags)  # type: ignore[union-attr]  # as above
        cols = max(f.type.cols for f in frags)  # type: ignore[union-attr]  # as above
        t = FragT(t.parent or "acc", rows, cols, t.dtype, warps=t.warps)
    partial = next((f.type.partial for f in frags if f.type.partial), None)  # type: ignore[union-attr]  # as above
    return t if t.partial == partial and t.stages == 1 else t.with_(partial=partial, stages=1)


def _check_pair(name: str, best: Expr, t: FragT, a: Expr, span: Span) -> None:
    u = a.type
    assert isinstance(u, FragT)
    if u.form == "scalar" or u is t:
        return
    note = lambda: ((best.span, f"this is {t}"), (a.span, f"this is {u}"))  # noqa: E731 - said by every fault below, and by none where the pair fits
    if u.form == "rowvec":
        if not follows(u, t):
            raise FaultError(Fault("D002", f"`{name}` combines `{t.form}` with a row vector of `{u.parent or 'acc'}`, whose rows other threads own", span, note(),
                                   help=f"make the vector from a fragment like the `{t.form}`", facts={"expected": t.form, "found": u.parent or "acc"}))  # fmt: skip
        if t.form not in ("colvec", "vec") and u.rows != t.rows:
            raise FaultError(Fault("D001", f"a row vector of {u.rows} rows meets {t.rows} rows", span, note(), facts={"expected": t.rows, "found": u.rows}))
    elif u.form == "colvec":
        if t.form == "vec":
            raise FaultError(Fault("D002", f"`{name}` combines a `vec` with a column vector of `{u.parent or 'acc'}`, whose columns other threads own", span, note(), help=COLUMNS_OF_VEC))
        if owners(u) != owners(t):
            raise FaultError(Fault("D002", f"`{name}` combines `{t.form}` with a column vector of `{u.parent or 'acc'}`, whose columns other threads own", span, note(),
                                   help=f"make the vector from a fragment like the `{t.form}`", facts={"expected": t.form, "found": u.parent or "acc"}))  # fmt: skip
        if t.form != "rowvec" and u.cols != t.cols:
            raise FaultError(Fault("D001", f"a column vector of {u.cols} columns meets {t.cols} columns", span, note(), facts={"expected": t.cols, "found": u.cols}))
    elif u.form != t.form:
        raise FaultError(Fault("D002", f"`{name}` combines forms `{t.form}` and `{u.form}`, which different threads own", span, note(),
                               help="bring both to one form, through shared memory if the conversion table has no shorter way",
                               facts={"expected": t.form, "found": u.form}))  # fmt: skip
    elif (u.rows, u.cols) != (t.rows, t.cols):
        raise FaultError(Fault("D001", f"`{name}` combines {'x'.join(map(str, t.shape))} and {'x'.join(map(str, u.shape))}", span, note(),
                               facts={"expected": list(t.shape), "found": list(u.shape)}))  # fmt: skip
    elif u.form == "vec" and u.chunk != t.chunk:
        raise FaultError(Fault("D002", f"`{name}` combines `vec[{t.chunk}]` and `vec[{u.chunk}]`: threads hold different elements", span, note(),
                               help="load one of them with `like=` the other", facts={"expected": t.chunk, "found": u.chunk}))  # fmt: skip
    elif u.warps != t.warps and u.warps is not None and t.warps is not None:
        raise FaultError(Fault("D002", f"`{name}` combines tiles split over warps as {t.warps} and {u.warps}", span, note()))


def literal(e: Expr) -> bool:
    """Whether `e` is a compile-time number, which takes the dtype of what it meets."""
    return e.op == "const" and not isinstance(e.attrs.get("value"), str)


_WIDENS = {("bf16", "f32"), ("f16", "f32"), ("i32", "i64")}
"""Conversions that lose nothing and are therefore implied where two operands meet."""


def common_dtype(name: str, args: tuple[Expr, ...], span: Span) -> str:
    """The dtype of all non-literal operands, after exact widening; D003 where they differ otherwise."""
    if len(args) == 2 and args[0].op != "const" != args[1].op and (same := dtype_of(args[0].type)) == dtype_of(args[1].type):
        return same
    typed = [a for a in args if a.op != "const" or not literal(a)]
    if not typed:
        return "i32" if all(isinstance(a.attrs.get("value"), (int, bool)) for a in args) else "f32"
    found = typed[0]
    dtype = dtype_of(found.type)
    for a in typed[1:]:
        other = dtype_of(a.type)
        if other == dtype or (other, dtype) in _WIDENS:
            continue
        if (dtype, other) not in _WIDENS:
            raise FaultError(Fault("D003", f"`{name}` combines {dtype} and {other}", span, ((found.span, dtype), (a.span, other)),
                                   help=_meeting(found, a), facts={"expected": dtype, "found": other}))  # fmt: skip
        found, dtype = a, other
    if len(typed) == len(args) or dtype not in DTYPES or not DTYPES[dtype].is_integer:
        return dtype
    fractions = [a for a in args if a.op == "const" and isinstance(a.attrs.get("value"), float)]
    if fractions:
        fraction = fractions[0]
        raise FaultError(Fault("D003", f"`{name}` combines {dtype} and {fraction.attrs['value']}, which is no integer", span,
                               ((found.span, dtype), (fraction.span, "floating point")), help="convert with `lm.cast(.., lm.f32)`, or write an integer",
                               facts={"expected": dtype, "found": "f32"}))  # fmt: skip
    return dtype


def _meeting(a: Expr, b: Expr) -> str:
    """How two operands of different dtypes can meet: as floating point where one of them is, and a vector that only starts as an integer from the start."""
    floats = [x for x in (a, b) if dtype_of(x.type) in DTYPES and DTYPES[dtype_of(x.type)].kind == "float"]
    to = dtype_of((floats or [a])[0].type)
    whole = b if floats and floats[0] is a else a
    if len(floats) == 1 and to == "f32" and whole.op == "var" and isinstance(whole.type, FragT) and whole.type.form in ("rowvec", "colvec") and whole.type.dtype == "i32":
        return f"an integer `init` makes i32: start `{whole.attrs['name']}` with `init=0.0` if it holds f32, else convert it with `lm.cast(.., lm.f32)`"
    return f"convert one with `lm.cast(.., lm.{to})`"


def dtype_of(t: Type) -> str:
    return getattr(t, "dtype", "none")


def elementwise_type(name: str, args: tuple[Expr, ...], span: Span) -> FragT:
    """The result type of `name` over `args`, at least one of which is a fragment."""
    t = broadcast(name, args, span)
    if name == "where":
        cond, x, y = args
        if dtype_of(cond.type) != "bool":
            raise FaultError(Fault("D003", f"the condition of `where` is {dtype_of(cond.type)}, not bool", cond.span))
        return t.with_(dtype=common_dtype(name, (x, y), span))
    dtype = common_dtype(name, args, span)
    if name in COMPARE:
        return t.with_(dtype="bool", partial=None)
    if name in LOGIC or name == "not" or (name in ("bitand", "bitor", "bitxor") and dtype == "bool"):
        if dtype != "bool":
            raise FaultError(Fault("D003", f"`{name}` combines truth values, found {dtype}", span, help="compare first, or use `&` and `|` on integers"))
        return t.with_(dtype="bool", partial=None)
    if name in _OF_FLOATS and DTYPES[dtype].kind != "float":
        raise FaultError(Fault("D003", f"`{name}` works on floating point, found {dtype}", span, help="convert with `lm.cast(x, lm.f32)`"))
    if (name in _WHOLE and DTYPES[dtype].kind in ("float", "scale")) or (name == "fma" and DTYPES[dtype].kind != "float"):
        kind = "floating point" if name == "fma" else "integers"
        raise FaultError(Fault("D003", f"`{name}` works on {kind}, found {dtype}", span, help="convert with `lm.cast(x, ..)`"))
    if t.partial == "add" and name not in ("add", "sub", "mul", "neg", "div"):
        raise FaultError(Fault("D007", f"`{name}` is applied to a partial sum that `lm.finish` has not completed", span,
                               help="finish it first: `lm.finish(..)`"))  # fmt: skip
    return t if t.dtype == dtype else t.with_(dtype=dtype)


_OPERAND_OF_TF32 = "declare the view, and the tensor that fills it, as tf32, which has the bytes of f32: the MMA reads the upper bits of what is loaded from it"


def _cast(call: Call) -> Type:
    x = call.type_of("x")
    dtype, form = str(call.attrs["dtype"]), call.attrs["form"]
    if isinstance(x, ScalarT):
        return ScalarT(dtype)
    if not isinstance(x, FragT):
        call.fault("D024", f"`lm.cast` takes a fragment, found {x}", "x")
    if x.partial and dtype != x.dtype:
        call.fault("D007", f"`lm.cast` is applied to a partial `{x.partial}` that `lm.finish` has not completed", "x")
    if form is None or form == x.form:
        if x.form in ("a", "b") and depth(x.dtype) != depth(dtype):
            call.fault("D002", f"the elements of an {x.dtype} `{x.form}` lie in other threads than those of one of {dtype}", "dtype",
                       help=_OPERAND_OF_TF32 if (x.dtype, dtype) == ("f32", "tf32") else "convert it before it becomes an operand: through a view, or as `acc`",
                       expected=x.dtype, found=dtype)  # fmt: skip
        return x.with_(dtype=dtype, stages=1)
    role = call.scope.role
    why = cast_form(x, str(form), dtype, role.member_warps if role is not None else 1)
    if why:
        call.fault("D002", f"`{x.form}` does not convert to `{form}` here: {why[0]}", "form", help=why[1], expected=form, found=x.form)
    return x.with_(form=form, dtype=dtype, stages=1)


def _iota(call: Call) -> Type:
    like, axis = call.type_of("like"), call.attrs["axis"]
    if not isinstance(like, FragT):
        call.fault("D024", f"`lm.iota` takes a fragment as model, found {like}", "like")
    if like.form in ("vec", "rowvec", "colvec"):
        return like.with_(dtype="i32", partial=None, stages=1)
    if axis == 0:
        return FragT("rowvec", like.rows, 1, "i32", warps=like.warps, parent=like.form)
    return FragT("colvec", 1, like.cols, "i32", warps=like.warps, parent=like.form)


def _in_bounds(call: Call) -> Type:
    x = call.type_of("x")
    if not isinstance(x, FragT):
        call.fault("D024", f"`lm.in_bounds` takes a fragment, found {x}", "x")
    return x.with_(dtype="bool", partial=None, stages=1)


def _transpose(call: Call) -> Type:
    x = call.type_of("x")
    if not isinstance(x, FragT) or x.form not in ("acc", "b"):
        call.fault("D002", f"`lm.transpose` takes a 16-bit `acc` or `b` fragment, found {x}", "x")
    if DTYPES[x.dtype].bits != 16:
        call.fault("D003", f"`lm.transpose` moves 16-bit elements, found {x.dtype}", "x", help="convert with `lm.cast` first, or read the view's `.T`")
    role = call.scope.role
    if x.form == "acc" and (x.warps[0] if x.warps else role.member_warps if role is not None else 1) > 1:
        call.fault("D002", "`lm.transpose` needs all rows in one warp, here several warps share them", "x",
                   help="store to a view, sync, and read its `.T`, or give each member one warp")  # fmt: skip
    return x.with_(form="b", rows=x.cols, cols=x.rows, stages=1)


SPECS = (
    OpSpec("cast", "elementwise", (P("x", "value|scalar"), P("dtype", "dtype"), P("form", "str", None), P("round", "str", None), P("saturate", "bool", True)),
           _cast, pure=True, doc="Convert the dtype, and the form where the conversion table allows it."),
    OpSpec("transpose", "elementwise", (P("x", "value"),), _transpose, pure=True, doc="Transpose a 16-bit fragment in registers (movmatrix)."),
    OpSpec("iota", "elementwise", (P("like", "value"), P("axis", "int"), P("base", "scalar", 0)), _iota, pure=True,
           doc="Global coordinates along an axis: a row vector (axis 0) or a column vector (axis 1)."),
    OpSpec("in_bounds", "elementwise", (P("x", "value"), P("rows", "scalar"), P("cols", "scalar")), _in_bounds, pure=True,
           doc="A mask: local row < rows and local column < cols."),
)  # fmt: skip
