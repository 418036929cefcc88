"""Expressions of the surface syntax, evaluated partially: to a compile-time value, a declared thing, or a typed expression."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

from cake_ir.dtypes import DTYPES
from cake_ir.fault import did_you_mean
from cake_ir.frontend import arith
from cake_ir.frontend.arith import as_expr, combine, gathered, is_const
from cake_ir.frontend.carried import note_read
from cake_ir.frontend.scope import MAX_ELEMENTS, MAX_STEPS, DTypeName, Elaboration, Local, Lost, Named, Poisoned
from cake_ir.frontend.standing import nothing_added
from cake_ir.ops.elementwise import elementwise_type
from cake_ir.program import Barrier, Expr, NamedBarrier, Param, Pipeline, Role, Scheduler, SmemPool, Tmem, Turns, View
from cake_ir.span import Span
from cake_ir.types import BOOL, I32, FragT, ListT, PairT, ScalarT, SlotT, TileT, TmemT, Type, ViewT

_REFUSED: dict[type[ast.expr], tuple[str, str]] = {
    ast.Lambda: ("`lambda` is not part of the language", "write the expression where it is used"),
    ast.JoinedStr: ("f-strings are not part of the language", ""),
    ast.NamedExpr: ("`:=` is not part of the language", "assign on a line of its own"),
    ast.Await: ("`await` is not part of the language", ""),
    ast.Yield: ("`yield` is not part of the language", ""),
    ast.YieldFrom: ("`yield` is not part of the language", ""),
    ast.Dict: ("dictionaries are not part of the language", "use a tuple"),
    ast.Set: ("sets are not part of the language", "use a tuple"),
    ast.DictComp: ("dictionaries are not part of the language", "use a list comprehension over compile-time values"),
    ast.SetComp: ("sets are not part of the language", "use a list comprehension over compile-time values"),
    ast.Starred: ("`*` unpacking is not part of the language", "name the items"),
}  # fmt: skip


def value(el: Elaboration, node: ast.expr) -> Any:
    """Evaluate one expression; raises `FaultError` or, past an earlier fault, `Poisoned`."""
    steps = el.steps = el.steps + 1
    if steps > MAX_STEPS:
        el.past_budget(node)
    return _HANDLERS[type(node)](el, node)


def _refused(el: Elaboration, node: ast.expr) -> NoReturn:
    message, help = _REFUSED.get(type(node), (f"`{type(node).__name__.lower()}` is not part of the language", ""))
    el.fail("N005", message, node, help=help)


def expr(el: Elaboration, node: ast.expr) -> Expr:
    """A run-time or constant expression (views and tensor memory by name become view expressions)."""
    return lift(el, value(el, node), el.span(node))


def lift(el: Elaboration, v: Any, span: Span) -> Expr:
    """`v` as an expression; a view's or tensor memory's name stands for the whole of it, a pair for both items."""
    if isinstance(v, Expr):
        return v
    if isinstance(v, Named):
        if isinstance(v.record, View):
            return Expr("view", (), {"view": v.record.name}, view_type(v.record), span)
        if isinstance(v.record, Tmem):
            d = v.record
            return Expr("tmem", (), {"tmem": d.name}, TmemT(d.name, d.shape[0], d.shape[1], d.dtype), span)
    elif isinstance(v, tuple) and len(v) == 2 and any(isinstance(x, Expr) for x in v):
        a, b = (lift(el, x, span) for x in v)
        if isinstance(a.type, FragT) and isinstance(b.type, FragT):
            return Expr("pair", (a, b), {}, PairT(a.type, b.type), span)
    return as_expr(el, v, span)


def view_type(d: View) -> ViewT:
    rows, cols = (1, d.shape[0]) if len(d.shape) == 1 else d.shape
    return ViewT(d.name, rows, cols, d.dtype, staged=d.stages == 1, rank=len(d.shape))


def const_value(el: Elaboration, node: ast.expr, what: str) -> Any:
    """A compile-time value; N024 if it is known only at run time."""
    v = value(el, node)
    if not is_const(v):
        el.fail("N024", f"{what} must be known at compile time", node, help=_at_compile_time(el, node))
    return v


def _at_compile_time(el: Elaboration, node: ast.expr) -> str:
    """What to use where a compile-time value is wanted: the variable of a static loop is none by itself."""
    name = node.id if isinstance(node, ast.Name) else ""
    if name and isinstance(el.env.get(name), Local) and any(name in x.bound for x in el.rounds):
        return f"use numbers and tunables; `{name}` is a number of run time here, but a static loop whose body rebinds a compile-time name, such as `n = n + 1`, is written out, and that name stays one"
    return "use numbers and tunables"


def const_int(el: Elaboration, node: ast.expr, what: str) -> int:
    v = const_value(el, node, what)
    if isinstance(v, float) and v.is_integer():
        el.fail("N024", f"{what} is an integer, found {v}", node, help="use `//` to divide")
    if not isinstance(v, int) or isinstance(v, bool):
        el.fail("N024", f"{what} is an integer", node)
    return v


def _constant(el: Elaboration, node: ast.Constant) -> Any:
    v = node.value
    if type(v) is int and v.bit_length() <= 63:  # most constants: no fault of theirs needs a place
        return v
    if isinstance(v, (int, float, bool, str, type(None))):
        return arith.bounded(el, v, el.span(node))
    el.fail("N005", "this literal is not part of the language", node)


def _name(el: Elaboration, node: ast.Name) -> Any:
    v = el.env.get(node.id, _MISSING)
    if type(v) is Named:  # what is declared stays what it is, whatever loop reads it
        if isinstance(v.record, Param) and v.record.kind == "scalar":
            return Expr("param", (), {"name": node.id}, ScalarT(v.record.dtype or "i32"), el.span(node))
        return v
    rounds = el.rounds
    if rounds and node.id not in rounds[-1].read:  # who read it before has told the loops around
        note_read(el, node.id)
    if type(v) is Local:
        return Expr("var", (), {"name": v.ir_name}, v.type, el.span(node))
    if isinstance(v, Lost):
        if not v.reason:
            raise Poisoned
        el.fail("N027", f"`{node.id}` {v.reason}", node, related=((v.span, "bound here"),) if v.span else ())
    elif v is _MISSING:
        if node.id in ("min", "max", "sum", "len", "abs", "range", el.receiver, "LM", "cake", "int", "float"):
            el.fail("N025", f"`{node.id}` is not a value here", node)
        el.fail("N026", f"`{node.id}` is not defined", node, help=did_you_mean(node.id, (k for k in el.env), "name"))
    return v


_MISSING = object()


def _tuple(el: Elaboration, node: ast.Tuple | ast.List) -> Any:
    if len(node.elts) > MAX_ELEMENTS:
        el.fail("N020", f"a tuple has more than {MAX_ELEMENTS} items", node)
    return gathered(el, map(partial(value, el), node.elts), el.span(node))


def _binop(el: Elaboration, node: ast.BinOp) -> Any:
    name = arith.BINARY.get(type(node.op))
    if name is None:
        el.fail("N005", f"`{type(node.op).__name__.lower()}` is not part of the language", node, help="`lm.mma` multiplies matrices")
    a, b = value(el, node.left), value(el, node.right)
    if type(a) is int and type(b) is int and name in arith.EXACT:  # the usual arithmetic of sizes: only what is too large has a place
        v = arith.EXACT[name](a, b)
        if v.bit_length() <= 63:
            return v
    if (type(b) is float and b == 0.0 and type(node.right) is ast.Name) or (type(a) is float and a == 0.0 and type(node.left) is ast.Name):
        nothing_added(el, node)
    return combine(el, name, (a, b), el.span(node))


def _unary(el: Elaboration, node: ast.UnaryOp) -> Any:
    v = value(el, node.operand)
    if isinstance(node.op, ast.USub):
        return arith.negate(el, v, el.span(node))
    if isinstance(node.op, ast.UAdd):
        return v
    if isinstance(node.op, ast.Not):
        if is_const(v):
            return not v
        e = as_expr(el, v, el.span(node))
        t: Type = elementwise_type("not", (e,), el.span(node)) if isinstance(e.type, FragT) else BOOL
        return Expr("not", (e,), {}, t, el.span(node))
    if isinstance(v, int):
        return ~v
    el.fail("N005", "`~` is for compile-time integers", node, help="write `not` for a condition")


def _compare(el: Elaboration, node: ast.Compare) -> Any:
    operands = [value(el, node.left)]
    result: Any = None
    for op, right in zip(node.ops, node.comparators, strict=True):
        name = arith.COMPARISON.get(type(op))
        if name is None:
            if isinstance(op, (ast.Is, ast.IsNot)):
                v: object = value(el, right)
                if v is None and is_const(operands[-1]):
                    part: Any = (operands[-1] is None) == isinstance(op, ast.Is)
                    result = part if result is None else combine(el, "and", (result, part), el.span(node))
                    operands.append(v)
                    continue
            el.fail("N005", "`in` and `is` are not part of the language", node, help="compare with `==` and combine with `or`")
        operands.append(value(el, right))
        part = combine(el, name, (operands[-2], operands[-1]), el.span(node))
        result = part if result is None else _logic(el, "and", result, part, el.span(node))
    return result


def _logic(el: Elaboration, name: str, a: Any, b: Any, span: Span) -> Any:
    if is_const(a):
        return (b if a else a) if name == "and" else (a if a else b)
    if is_const(b):
        return (a if b else b) if name == "and" else (b if b else a)
    return combine(el, name, (a, b), span)


def _boolop(el: Elaboration, node: ast.BoolOp) -> Any:
    name = "and" if isinstance(node.op, ast.And) else "or"
    result = value(el, node.values[0])
    for other in node.values[1:]:
        if is_const(result) and bool(result) == (name == "or"):
            return result
        always = is_const(result)
        result = _logic(el, name, result, value(el, other) if always else _unconditional(el, other, "bind it to a name in front of this statement, or put it under an `if` statement"), el.span(node))
    return result


def _unconditional(el: Elaboration, node: ast.expr, help_text: str = "put it under an `if` statement") -> Any:
    """A value that the author guards by a run-time condition within one expression: it may not contain an operation."""
    before = len(el.out or ())
    v = value(el, node)
    if len(el.out or ()) > before:
        el.fail("N065", "an operation inside a conditional expression would run whatever the condition says", node, help=help_text)
    return v


def _ifexp(el: Elaboration, node: ast.IfExp) -> Any:
    test = value(el, node.test)
    if is_const(test):
        return value(el, node.body if test else node.orelse)
    sides = ((test, node.test), (_unconditional(el, node.body), node.body), (_unconditional(el, node.orelse), node.orelse))
    cond, a, b = (as_expr(el, v, el.span(n)) for v, n in sides)
    if isinstance(cond.type, FragT):
        return Expr("where", (cond, a, b), {}, elementwise_type("where", (cond, a, b), el.span(node)), el.span(node))
    if not isinstance(a.type, ScalarT) or not isinstance(b.type, ScalarT):
        el.fail("N021", "a run-time choice is between numbers", node, help="use an `if` statement")
    return Expr("select", (cond, a, b), {}, a.type if a.op != "const" else b.type, el.span(node))


def _comprehension(el: Elaboration, node: ast.ListComp | ast.GeneratorExp) -> tuple[Any, ...]:
    if len(node.generators) != 1 or node.generators[0].is_async:
        el.fail("N005", "a comprehension has one `for`", node)
    gen = node.generators[0]
    items = value(el, gen.iter)
    if not isinstance(items, tuple) or not is_const(items):
        el.fail("N024", "a comprehension runs over compile-time values", gen.iter)
    if not isinstance(gen.target, ast.Name):
        el.fail("N005", "a comprehension binds one name", gen.target)
    name = gen.target.id
    saved = el.env.get(name, el)

    def made() -> Iterator[Any]:
        for item in items:
            el.env[name] = item
            if all(const_value(el, c, "a filter") for c in gen.ifs):
                yield value(el, node.elt)

    try:
        return gathered(el, made(), el.span(node))
    finally:
        if saved is el:
            el.env.pop(name, None)
        else:
            el.env[name] = saved


def _subscript(el: Elaboration, node: ast.Subscript) -> Any:
    base = value(el, node.value)
    span = el.span(node)
    if isinstance(base, tuple):
        if isinstance(node.slice, ast.Slice):
            bounds = [None if b is None else const_int(el, b, "a slice bound") for b in (node.slice.lower, node.slice.upper, node.slice.step)]
            if bounds[2] == 0:
                el.fail("N022", "a slice step is not zero", node.slice)
            return base[slice(*bounds)]
        i = const_int(el, node.slice, "an index of a tuple")
        if not -len(base) <= i < len(base):
            el.fail("N022", f"index {i} is outside a tuple of {len(base)}", node.slice, expected=len(base), found=i)
        return base[i]
    if isinstance(node.slice, ast.Slice):
        el.fail("N005", "slices are for compile-time tuples", node, help="use `.rows(lo, n)` and `.cols(lo, n)`")
    e = lift(el, base, el.span(node.value))
    if isinstance(e.type, ViewT):
        if e.type.staged and not (e.op == "view" or (e.op == "T" and e.args[0].op == "view")):
            el.fail("N036", f"`{e.type.view}` is already one slot", node, help="index a view once, by its ring position")
        slot = slot_expr(el, value(el, node.slice), el.span(node.slice))
        t = e.type
        return Expr("stage", (e, slot), {}, ViewT(t.view, t.rows, t.cols, t.dtype, t.transposed, True, t.rank), span)
    if isinstance(e.type, FragT) and e.type.stages > 1:
        slot = slot_expr(el, value(el, node.slice), el.span(node.slice))
        return Expr("frag_stage", (e, slot), {}, e.type.with_(stages=1), span)
    if isinstance(e.type, ListT):
        place = lift(el, value(el, node.slice), el.span(node.slice))
        if not isinstance(place.type, ScalarT) or place.type.dtype not in ("i32", "i64", "u32"):
            el.fail("N021", f"{place.type} does not number a place of a list", node.slice)
        k = place.attrs.get("value") if place.op == "const" else 0
        if not (isinstance(k, int) and 0 <= k < e.type.k):
            el.fail("N022", f"a list of {e.type.k} has places 0 to {e.type.k - 1}", node.slice, expected=e.type.k, found=k)
        if e.type.value.partial:
            el.fail("D007", "a place of a list is read before `lm.finish`", node, help="finish it: `lm.finish(..)`")
        return Expr("list_item", (e, place), {}, PairT(e.type.value, e.type.index), span)
    if isinstance(e.type, PairT):
        k = const_int(el, node.slice, "an index of a pair")
        if k not in (0, 1):
            el.fail("N022", "a pair has items 0 and 1", node.slice)
        return Expr("item", (e,), {"k": k}, e.type.value if k == 0 else e.type.index, span)
    el.fail("N037", f"{e.type} cannot be indexed", node)


def slot_expr(el: Elaboration, v: Any, span: Span) -> Expr:
    """A slot, or an integer that numbers one."""
    e = lift(el, v, span)
    if isinstance(e.type, SlotT) or (isinstance(e.type, ScalarT) and e.type.dtype in ("i32", "i64", "u32")):
        return e
    el.fail("N038", f"{e.type} does not name a slot", span, help="use the value of `lm.step(ring)`, or an integer")


def _attribute(el: Elaboration, node: ast.Attribute) -> Any:
    span = el.span(node)
    if node.attr.startswith("_"):
        el.fail("N005", "names that start with an underscore are not reachable", node)
    if isinstance(node.value, ast.Name) and node.value.id in (el.receiver, "LM", "lm") and node.value.id not in el.env:
        if node.attr in DTYPES:
            return DTypeName(node.attr)
        if node.attr == "inf":
            return math.inf
        from cake_ir.frontend.calls import known_calls

        el.fail("N028", f"`lm.{node.attr}` is not a value", node, help=did_you_mean(node.attr, [*DTYPES, "inf", *known_calls()], "name"))
    base = value(el, node.value)
    if isinstance(base, Named):
        return _declared_attribute(el, node, base.record, span)
    e = lift(el, base, el.span(node.value))
    t = e.type
    if isinstance(t, TileT):
        if node.attr not in t.names:
            el.fail("N029", f"tiles of `{t.scheduler}` have no field `{node.attr}`", node, help=did_you_mean(node.attr, t.names, "field"))
        return Expr("field", (e,), {"name": node.attr}, I32, span)
    if isinstance(t, SlotT) and node.attr == "index":
        return Expr("slot_index", (e,), {"ring": t.ring}, I32, span)
    if isinstance(t, ViewT) and node.attr == "T":
        if t.rank == 1:
            el.fail("D021", "a 1-D view has no transpose", node)
        return Expr("T", (e,), {}, ViewT(t.view, t.rows, t.cols, t.dtype, not t.transposed, t.staged, t.rank), span)
    if isinstance(t, ListT) and node.attr == "worst":
        return Expr("worst", (e,), {}, t.value.with_(partial=None), span)
    el.fail("N029", f"{t} has no attribute `{node.attr}`", node)


def _declared_attribute(el: Elaboration, node: ast.Attribute, record: Any, span: Span) -> Any:
    if isinstance(record, Role) and node.attr == "index":
        if el.role is None or el.role.name != record.name:
            el.fail("N035", f"`{record.name}.index` has a value only inside `with {record.name}:`", node)
        if record.members == 1:
            return 0
        return Expr("role_index", (), {"role": record.name}, I32, span)
    if isinstance(record, View) and node.attr == "T":
        e = lift(el, Named(record), span)
        assert isinstance(e.type, ViewT)
        if e.type.rank == 1:
            el.fail("D021", "a 1-D view has no transpose", node)
        return Expr("T", (e,), {}, ViewT(e.type.view, e.type.rows, e.type.cols, e.type.dtype, True, e.type.staged, 2), span)
    names = {Role: "role", View: "view", Barrier: "barrier", NamedBarrier: "named barrier", Turns: "turn", Pipeline: "ring", Scheduler: "scheduler",
             SmemPool: "pool", Param: "tensor", Tmem: "tensor memory"}  # fmt: skip
    el.fail("N029", f"{names.get(type(record), 'this')} `{record.name}` has no attribute `{node.attr}`", node)


def _call(el: Elaboration, node: ast.Call) -> Any:
    from cake_ir.frontend.calls import call  # imports this module

    _HANDLERS[ast.Call] = call  # from now on without this detour
    return call(el, node)


class _Handlers(dict[type[ast.expr], Callable[[Elaboration, Any], Any]]):
    """What evaluates each kind of node; kinds that the language lacks are refused."""

    def __missing__(self, kind: type[ast.expr]) -> Callable[[Elaboration, Any], Any]:
        return _refused


_HANDLERS = _Handlers({
    ast.Constant: _constant, ast.Name: _name, ast.Tuple: _tuple, ast.List: _tuple, ast.BinOp: _binop, ast.UnaryOp: _unary,
    ast.Compare: _compare, ast.BoolOp: _boolop, ast.IfExp: _ifexp, ast.ListComp: _comprehension, ast.GeneratorExp: _comprehension,
    ast.Subscript: _subscript, ast.Attribute: _attribute, ast.Call: _call,
})  # fmt: skip
