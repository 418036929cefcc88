"""Bind the arguments of a call to the parameters of an operation's spec, each by its kind."""

from __future__ import annotations

import ast
from typing import Any

from cake_ir.dtypes import DTYPES
from cake_ir.fault import did_you_mean
from cake_ir.frontend.arith import as_expr, is_const
from cake_ir.frontend.scope import DTypeName, Elaboration, Named
from cake_ir.frontend.values import lift, slot_expr, value
from cake_ir.ops.spec import OPERAND_KINDS, Call, OpSpec, P
from cake_ir.program import Barrier, ClusterBarrier, Expr, NamedBarrier, Param, Pipeline, Role, Turns
from cake_ir.span import Span
from cake_ir.types import FragT, ListT, PairT, ScalarT, ScalesT, SlotT, TmemT, ViewT

_RECORDS: dict[str, tuple[tuple[type, ...], str]] = {
    "barrier": ((Barrier,), "barrier"), "named": ((NamedBarrier, ClusterBarrier), "named barrier"), "turns": ((Turns,), "turn"),
    "role": ((Role,), "role"), "ring": ((Pipeline,), "ring"), "tma": ((Param,), "tensor"), "gmem": ((Param,), "tensor"), "tensor": ((Param,), "tensor"),
}  # fmt: skip


def bind(el: Elaboration, spec: OpSpec, node: ast.Call, receiver: Expr | None) -> Call:
    """The bound call; raises N044 (arity), N048 (unknown option) or a fault about an argument's kind."""
    bound = Call(spec.name, {}, {}, el.span(node), {}, el)
    operands, spans = bound.operands, bound.spans
    params, order = spec.params, spec.order
    first = order[0] if receiver is not None else None
    if first is not None and receiver is not None:
        params, order = params[1:], order[1:]
        operands[first] = receiver
        spans[first] = receiver.span
    if len(node.args) > len(params):
        el.fail("N044", f"`{spec.spelling}` takes at most {len(params)} arguments, found {len(node.args)}", node.args[len(params)],
                help=f"parameters: {', '.join(order)}", expected=len(params), found=len(node.args))  # fmt: skip
    given = dict(zip(order, node.args, strict=False))
    for k in node.keywords:
        name = k.arg
        assert name is not None
        if name not in order:
            el.fail("N048", f"`{spec.spelling}` has no option `{name}`", k.value, help=did_you_mean(name, order, "option"))
        if name in given:
            el.fail("N044", f"`{name}` is given twice", k.value)
        given[name] = k.value
    for p in params:
        name = p.name
        arg = given.get(name)
        if arg is not None:
            span = spans[name] = el.span(arg)
            _argument(el, bound, p, arg, span)
        elif p.required:
            el.fail("N044", f"`{spec.spelling}` needs `{name}`", node, help=f"parameters: {', '.join(order)}")
        elif not p.is_operand:
            bound.attrs[name] = p.default
        else:
            operands[name] = None if p.default is None else as_expr(el, p.default, bound.span)
    _stage_of_view(el, spec, bound)
    return bound


def _argument(el: Elaboration, bound: Call, p: P, arg: ast.expr, span: Span) -> None:
    v = value(el, arg)
    if v is None and p.default is None:
        (bound.operands if p.is_operand else bound.attrs)[p.name] = None
        return
    for kind in p.kinds:
        if kind in OPERAND_KINDS:
            e = _operand(el, kind, v, span)
            if e is not None:
                if p.name in _INTEGERS:
                    _whole_numbers(el, p, e)
                bound.operands[p.name] = e
                return
        else:
            ok, c = _attribute(kind, v)
            if ok:
                bound.attrs[p.name] = c
                return
    _mismatch(el, bound, p, v, span)


_INTEGERS = frozenset({"coords", "i", "rows", "cols", "offset", "n", "col", "cta", "base"})
"""Parameters that count elements."""


def _whole_numbers(el: Elaboration, p: P, operand: Any) -> None:
    """N024 where a fraction is given for a position or a count (a parameter of `_INTEGERS`)."""
    for e in operand if isinstance(operand, tuple) else (operand,):
        if p.name == "coords" and not isinstance(e.type, (ScalarT, FragT)):
            el.fail("N021", f"a coordinate is a number, found {e.type}", e.span, help="use `.index` for the slot's number" if isinstance(e.type, SlotT) else "")
        dtype = getattr(e.type, "dtype", "")
        if isinstance(e.type, (ScalarT, FragT)) and dtype in DTYPES and not DTYPES[dtype].is_integer:
            el.fail("N024", f"`{p.name}` counts elements, found {e.type}", e.span, help="convert with `lm.cast(x, lm.i32)`")


def _operand(el: Elaboration, kind: str, v: Any, span: Span) -> Any:
    if kind == "coords":
        if isinstance(v, tuple):
            return tuple([x if isinstance(x, Expr) else as_expr(el, x, span) for x in v])
        return None
    if not isinstance(v, Expr):
        if isinstance(v, (str, type(None))) or (isinstance(v, tuple) and is_const(v)) or (isinstance(v, Named) and not hasattr(v.record, "shape")):
            return None
        v = lift(el, v, span)
    if not isinstance(v.type, _TYPES[kind]) or (kind == "place" and v.op not in _PLACES):
        return None
    return slot_expr(el, v, span) if kind == "slot" else v


_TYPES: dict[str, type | tuple[type, ...]] = {
    "view": ViewT, "tmem": TmemT, "scales": ScalesT, "value": (FragT, PairT, ListT), "place": FragT, "scalar": ScalarT, "slot": (SlotT, ScalarT),
}  # fmt: skip
"""What an operand of each kind is."""
_PLACES = frozenset({"var", "frag_stage", "frag_cols", "frag_rows"})
"""Expressions that name registers."""


def _attribute(kind: str, v: Any) -> tuple[bool, Any]:
    if kind in _RECORDS:
        classes, _ = _RECORDS[kind]
        if isinstance(v, Named) and isinstance(v.record, classes):
            if isinstance(v.record, Param) and kind in ("tma", "gmem") and v.record.kind != kind:
                return False, None
            return True, v.record.name
        return False, None
    if kind == "dtype":
        return isinstance(v, DTypeName) or (isinstance(v, str) and v in DTYPES), str(v)
    if kind == "shape":
        if isinstance(v, int) and not isinstance(v, bool):
            v = (v,)
        return isinstance(v, tuple) and all(isinstance(n, int) and n > 0 for n in v) and 1 <= len(v) <= 5, v
    if kind in ("int", "axis"):
        return isinstance(v, int) and not isinstance(v, bool), v
    if kind == "float":
        return isinstance(v, (int, float)) and not isinstance(v, bool), v
    if kind == "bool":
        return isinstance(v, bool), v
    if kind == "str":
        return isinstance(v, str) and not isinstance(v, DTypeName), v
    return False, None


_WORDS = {"view": "a view of shared memory", "tmem": "tensor memory", "value": "a fragment", "place": "a fragment's name", "scalar": "a number",
          "coords": "a tuple of coordinates", "slot": "a ring position", "scales": "block scales, `lm.scales(x, block, dtype, layout)`", "tma": "a tensor declared `LM.tma..`", "gmem": "a tensor declared `LM.gmem..`",
          "dtype": "a dtype such as `lm.bf16`", "shape": "a tuple of positive integers", "int": "a compile-time integer", "axis": "an axis",
          "float": "a compile-time number", "bool": "True or False", "str": "a string"}  # fmt: skip


def _mismatch(el: Elaboration, bound: Call, p: P, v: Any, span: Span) -> None:
    words = " or ".join(_WORDS.get(k, f"a {_RECORDS[k][1]}" if k in _RECORDS else k) for k in p.kinds)
    help = ""
    for kind in p.kinds:
        if kind in ("barrier", "named", "turns", "role", "ring"):
            names = [n for cls in _RECORDS[kind][0] for n in el.of_kind(cls)]
            help = did_you_mean("", names, _RECORDS[kind][1])
        if kind in ("tma", "gmem") and isinstance(v, Named) and isinstance(v.record, Param):
            help = f"`{v.record.name}` is declared `LM.{v.record.kind}{v.record.rank}d`"
    found = f", found {v.type}" if isinstance(v, Expr) else ", found a number" if isinstance(v, (int, float)) else ""
    el.fail("N045", f"`{p.name}` takes {words}{found}", span, help=help)


def _stage_of_view(el: Elaboration, spec: OpSpec, bound: Call) -> None:
    """Apply `stage=` to a view that was not indexed, and check that slots belong to the barrier's ring."""
    stage = bound.operands.get("stage")
    for name in spec.views:
        e = bound.operands.get(name)
        if not (isinstance(e, Expr) and isinstance(e.type, ViewT)) or e.type.staged or spec.name == "tma_prefetch":  # a prefetch takes the view's box, no slot
            continue
        if name == "view" and isinstance(stage, Expr):
            t = e.type
            bound.operands[name] = Expr("stage", (e, stage), {}, ViewT(t.view, t.rows, t.cols, t.dtype, t.transposed, True, t.rank), e.span)
        else:
            el.fail("N049", f"`{e.type.view}` has several stages and none is chosen", e.span,
                    help=f"write `{e.type.view}[s]`" + (" or `stage=s`" if any(p.name == "stage" for p in spec.params) else ""))  # fmt: skip
    barrier = bound.attrs.get("barrier")
    record = el.declared(str(barrier)) if barrier is not None else None
    if isinstance(record, Barrier):
        if not isinstance(stage, Expr):
            el.fail("N049", f"`{record.name}` is one barrier a stage and none is chosen", bound.span, help="add `stage=s`")
        if isinstance(stage.type, SlotT) and stage.type.ring != record.pipeline:
            el.fail("N050", f"a slot of ring `{stage.type.ring}` is used with `{record.name}`, which rides ring `{record.pipeline}`",
                    bound.spans["stage"], related=((record.span, f"rides `{record.pipeline}`"),), expected=record.pipeline, found=stage.type.ring)  # fmt: skip
    elif isinstance(record, Turns) and isinstance(stage, Expr):
        el.fail("N048", f"`{record.name}` is a turn and has no stages", bound.spans["stage"])
