"""Block scales that are not those of the elements that they scale, told as faults."""

from __future__ import annotations

from cake_ir.fault import Edit, Fault, Fix
from cake_ir.ops.scales import WORD, first_of
from cake_ir.printer import print_expr
from cake_ir.program import Expr, Op
from cake_ir.span import Span
from cake_ir.types import ScalesT, ViewT
from cake_verify.analyses import edits
from cake_verify.analyses.labels import boxed
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.report_labels import text_of
from cake_verify.analyses.value_scales import ScaleClash, Vector
from cake_verify.analyses.value_walk import ValueWalk
from cake_verify.analyses.words import call, span_of


def scaled(plan: Plan, walk: ValueWalk, c: ScaleClash, facts: dict[str, object]) -> Fault:
    """A product that takes the scales of other elements."""
    load, operand = plan.program.ops[c.load], c.name[-1]
    tensor, product = str(load.attrs["tensor"]), call(c.op)
    given = span_of(c.op, c.name)
    data = _load_of(plan, c.op, operand)
    whose = ((_coords(data), f"`{operand}` is loaded here"),) if data is not None else ()
    facts = facts | {"operand": c.name, "tensor": tensor, "axis": c.axis}
    if c.why == "slice":
        message = f"{product} takes scales of `{tensor}` for a slice of `{operand}` that they are not of: between two products `{operand}` moves along K by other blocks than `first` and the words that it counts in"
        return Fault("S045", message, given, whose, "`first` is the number of the slice's first block in its word: blocks before it, modulo four", _number(plan, c), facts)
    if c.why == "other":
        theirs = "b" if operand == "a" else "a"
        message = f"{product} scales `{operand}` by scales that move with `{theirs}`, `{tensor}` at {_at(c.uses[-1].at)}"
        if all(c.load not in s.uses for s in walk.scaled if s.op is c.op and s.name != c.name) and not _both(walk, c):
            fixes = _like(plan, load, c.axis, data, False, _height(plan, data))
            return Fault("S045", message, _coordinate(load, c.axis), ((given, f"they scale `{operand}` here"), *whose), f"the scales of `{operand}` follow its rows", fixes,
                         facts | {"role": plan.sites[c.load].role})  # fmt: skip
        return Fault("S045", message, given, ((load.span, "they are loaded here"), *whose), f"give `{c.name}` the scales of `{operand}`", _exchanged(plan, walk, c), facts)
    facts = facts | {"role": plan.sites[c.load].role}
    related = ((given, f"they scale `{operand}` here"), *whose)
    span = _coordinate(load, c.axis)
    if not c.uses:
        assert c.one and c.other
        message = f"{product} scales rows of `{operand}` from `{c.one[0]}` = {c.one[1]} on by the scales of rows from {c.other[1]} on"
        box = boxed(plan, load)
        axis = box.col if box is not None and box.col is not None and box.col_axis == c.one[0] else box.row if box is not None else 0
        return Fault("S045", message, _coordinate(load, axis or 0), related, f"load the scales of the rows of `{operand}`", _like(plan, load, axis or 0, data, False, 1), facts)
    one, last = c.uses[0], c.uses[-1]
    at, rows = last.at[c.axis], last.row[-1]
    if c.why == "rows":
        same = one.row == last.row
        apart = one.row[-1] != rows
        where = f"rows of `{operand}` from {one.row[-1]} and from {rows} on" if apart else f"`{operand}` of {_at(one.row[:-1])} and of {_at(last.row[:-1])}, outer coordinates,"
        message = (f"{product} scales the same elements of `{operand}` by different scales, `{tensor}` at {_at(one.at)} and at {_at(last.at)}" if same
                   else f"{product} scales {where} by the same scales, `{tensor}` at {_at(last.at)}")  # fmt: skip
        return Fault("S045", message, span, related, f"the scales of `{operand}` follow its rows", _like(plan, load, c.axis, data, False, _height(plan, data)), facts)
    if c.why == "same":
        message = f"{product} scales elements of `{operand}` from K = {one.k} and from {last.k} on by the same scales, `{tensor}` at {_at(last.at)}"
        return Fault("S045", message, span, related, f"the scales of `{operand}` follow K: bring them anew for each word of four blocks", _like(plan, load, c.axis, data, True, c.unit), facts)
    if c.why == "apart":
        message = f"{product} takes `{tensor}` at {_at(one.at)} for elements of `{operand}` from K = {one.k} on, and at {_at(last.at)} from {last.k} on: its scales do not keep pace with it"
        return Fault("S045", message, span, related, f"one word of scales further on is for four blocks of `{operand}` further on", _like(plan, load, c.axis, data, True, c.unit), facts)
    if c.why == "crossed":
        message = f"{product} takes `{tensor}` at {_at(one.at)} for rows of `{operand}` from {one.row[-1]} on, and at {_at(last.at)} for those from {rows} on: its scales do not follow its rows"
        return Fault("S045", message, span, related, f"the scales of `{operand}` follow its rows", _like(plan, load, c.axis, data, False, _height(plan, data)), facts)
    along = c.why == "shift-k"
    where = last.k if along else rows
    what = f"elements of `{operand}` from K = {where} on" if along else f"rows of `{operand}` from {where} on"
    message = f"{product} scales {what} by `{tensor}` at {_at(last.at)}, and always so far from them: its scales count from somewhere else"
    expected = where // c.unit if c.unit else None
    return Fault("S045", message, span, related, f"count the scales of `{operand}` from where its elements are counted", _like(plan, load, c.axis, data, along, c.unit), facts | {"expected": expected, "found": at})


def _number(plan: Plan, c: ScaleClash) -> tuple[Fix, ...]:
    """`first` as it follows from the columns at which the operand's slice starts."""
    scales, operand = c.op.operands[c.name], c.op.operands[c.name[-1]]
    assert isinstance(scales, Expr) and isinstance(scales.type, ScalesT) and isinstance(operand, Expr)
    if operand.op == "var":
        made = next((s.op for s in plan.sites.values() if operand.attrs["name"] in getattr(s.stmt, "targets", ()) and s.role == plan.sites[c.op.id].role), None)
        view = made.operands.get("view") if made is not None else None
        operand = view if isinstance(view, Expr) else operand
    first, cut = first_of(scales), next((x for x in operand.parts() if x.op == "cols"), None)
    if cut is None or not first.span.line or first.span == scales.span:
        return ()
    lo, block = cut.args[1], scales.type.block
    factors = [a for a in lo.args if not (a.op == "const" and a.attrs["value"] == block)] if lo.op == "mul" else []
    text = text_of(factors[0]) if len(factors) == 1 else None
    if text is None and (whole := text_of(lo)) is not None:
        text = f"({whole}) // {block} % {WORD}"
    return (edits.replace(first.span, text),) if text is not None else ()


def _both(walk: ValueWalk, c: ScaleClash) -> bool:
    """Whether each operand of a product has the other's scales."""
    return {x.name for x in walk.clashes if isinstance(x, ScaleClash) and x.op is c.op and x.why == "other"} == {"scale_a", "scale_b"}


def _exchanged(plan: Plan, walk: ValueWalk, c: ScaleClash) -> tuple[Fix, ...]:
    """Both operands' scales in each other's place, where each has the other's."""
    a, b = c.op.operands["scale_a"], c.op.operands["scale_b"]
    if any(isinstance(e, Expr) and e.args[0].op == "var" for e in (a, b)):
        return ()  # under a name, or of another one than its author's
    if not _both(walk, c) or not isinstance(a, Expr) or not isinstance(b, Expr) or not {"scale_a", "scale_b"} <= set(c.op.spans):
        return ()
    texts = [print_expr(plan.program, e) for e in (b, a)]
    return (Fix((Edit(c.op.spans["scale_a"], texts[0]), Edit(c.op.spans["scale_b"], texts[1])), "likely", "exchange the scales of `a` and `b`"),)


def _at(coords: Vector) -> str:
    return f"({', '.join(map(str, coords))})"


def _coords(op: Op) -> Span:
    return op.spans.get("coords", op.span)


def _coordinate(load: Op, axis: int) -> Span:
    """Where a coordinate of a load is written."""
    coords = load.operands.get("coords")
    e = coords[axis] if isinstance(coords, tuple) and axis < len(coords) else load.operands.get("offset")
    return e.span if isinstance(e, Expr) and e.span.line else _coords(load)


def _load_of(plan: Plan, product: Op, operand: str) -> Op | None:
    """The load of an operand's elements, where its view has one."""
    e = product.operands.get(operand)
    views = {x.type.view for x in e.parts() if isinstance(x.type, ViewT)} if isinstance(e, Expr) else set()
    if not views and isinstance(e, Expr) and e.op == "var":
        made = [s.op for s in plan.sites.values() if e.attrs["name"] in getattr(s.stmt, "targets", ())]
        views = {x.type.view for op in made for y in op.operands.values() if isinstance(y, Expr) for x in y.parts() if isinstance(x.type, ViewT)}
    loads = [s.op for s in plan.sites.values() if s.op.id in plan.set_of and isinstance(v := s.op.operands["view"], Expr) and isinstance(v.type, ViewT) and v.type.view in views]
    return loads[0] if len(loads) == 1 else None


def _height(plan: Plan, data: Op | None) -> int:
    """Rows of one load of elements, which one place of atoms is for."""
    view = data.operands["view"] if data is not None else None
    return 128 if isinstance(view, Expr) and isinstance(view.type, ViewT) and view.type.rows % 128 == 0 else 0


def _like(plan: Plan, load: Op, axis: int, data: Op | None, along: bool, unit: int) -> tuple[Fix, ...]:
    """The coordinate of the scales that follows from that of the elements, `unit` of which stand under one place of it."""
    box = boxed(plan, data) if data is not None else None
    coords, mine = (data.operands["coords"] if data is not None else None), load.operands.get("coords")
    k = (box.col if along else box.row) if box is not None else None
    if k is None or not unit or not isinstance(coords, tuple) or not isinstance(mine, tuple) or axis >= len(mine) or data is None:
        return ()
    if plan.sites[data.id].role != plan.sites[load.id].role or not mine[axis].span.line:
        return ()
    e = coords[k]
    text = None
    if e.op == "mul" and any(a.op == "const" and a.attrs["value"] == unit for a in e.args):
        text = text_of(next(a for a in e.args if not (a.op == "const" and a.attrs["value"] == unit)))
    elif (whole := text_of(e)) is not None:
        text = whole if unit == 1 else f"({whole}) // {unit}"
    if text is None:
        return ()
    whole_span = load.spans.get("coords")
    if whole_span is None or mine[axis].span != whole_span:
        return (edits.replace(mine[axis].span, text),)
    texts = [text if i == axis else text_of(x) for i, x in enumerate(mine)]  # a constant has no place of its own
    return (edits.replace(whole_span, f"({', '.join(str(t) for t in texts)})"),) if None not in texts else ()


__all__ = ["scaled"]
