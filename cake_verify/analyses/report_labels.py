"""Labels of values in words: where they are, and the coordinates that they come from."""

from __future__ import annotations

from cake_ir.program import Expr
from cake_ir.span import Span
from cake_verify.analyses.affine import Affine, affine
from cake_verify.analyses.labels import Label, boxed
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.trips import linear, resolver_of, spoken, written
from cake_verify.analyses.value_state import Clash


def place(label: Label) -> str:
    """A place on an axis, in words."""
    return f"`{label[0]}` = {label[1]}" if label else "another place"


def coordinate(plan: Plan, label: Label) -> Expr | None:
    """The coordinate with which a label was read or is written."""
    if not label:
        return None
    op = plan.program.ops[label[2]]
    coords, box = op.operands.get("coords"), boxed(plan, op)
    if not isinstance(coords, tuple) or box is None:
        return None
    k = box.col if box.col_axis == label[0] else box.row if box.row_axis == label[0] else None
    return coords[k] if k is not None else None


def form_of(plan: Plan, label: Label) -> Affine | None:
    """The coordinate of a label as a sum in names that mean the same in every role."""
    e = coordinate(plan, label)
    form = affine(plan.program, plan.sites[label[2]].role, e) if e is not None and label else None
    return None if form is None else shared(form)


def shared(form: Affine) -> Affine:
    """A sum in names that mean the same in every role: tiles by their fields, counters as they are written."""
    return Affine(form.constant, {(f".{n.partition('.')[2]}" if "." in n else written(n)): c for n, c in form.terms.items()})


def two_parts(plan: Plan, c: Clash) -> bool:
    """Whether what meets are two parts of one tensor, as gate and up of a matrix that holds both, or queries and keys: their starts lie an argument apart, or an
    even part of the extent, in every tile and round; parts that are multiplied may also lie beside each other in what one tile steps by."""
    assert c.one and c.other
    ops = [plan.program.ops[x[2]] for x in (c.one, c.other)]
    tensor = plan.program.tensors.get(str(ops[0].attrs.get("tensor")))
    if c.kind not in ("added", "contraction") or ops[0] is ops[1] or tensor is None or ops[1].attrs.get("tensor") != tensor.name:
        return False
    forms = [linear(resolver_of(plan.program, plan.sites[x[2]].role)(e)) for x in (c.one, c.other) if (e := coordinate(plan, x)) is not None]
    if len(forms) != 2:
        return False
    (a, left), (b, right) = forms
    terms = {t for t in {*left, *right} if left.get(t, 0) != right.get(t, 0)}
    if terms:
        return terms <= plan.program.scalars.keys()
    if c.kind == "contraction" and left and 0 < abs(a - b) < min(map(abs, left.values())):
        return True
    extent = next((n for n, name in zip(tensor.extents, tensor.axes, strict=False) if name == c.one[0]), None)
    return isinstance(extent, int) and a != b and extent % abs(a - b) == 0 and extent > abs(a - b)


def span_at(plan: Plan, label: Label) -> Span:
    """Where a label comes from: its coordinate, else its operation."""
    e = coordinate(plan, label)
    assert label
    return e.span if e is not None and e.span.line else plan.program.ops[label[2]].span


def sources(plan: Plan, c: Clash, first: Label = ()) -> tuple[tuple[Span, str], ...]:
    """Where both sides' places come from."""
    out = []
    for label in (c.one, c.other):
        if label and label is not first:
            verb = "goes to" if plan.program.ops[label[2]] is c.op else "comes from"
            out.append((span_at(plan, label), f"{verb} {place(label)}"))
    return tuple(out)


def text_of(e: Expr) -> str | None:
    """A coordinate as its author would write it; None where something in it has no name outside its role."""
    known = all(n.op in ("const", "param", "var", "field", "add", "sub", "mul", "floordiv", "mod", "cdiv", "min", "max", "role_index") for n in e.parts())
    return spoken(e) if known else None


def tiles_of(a: Affine) -> dict[str, int]:
    """The terms that every role shares: tile fields and loop counters, without the member's."""
    return {n: c for n, c in a.terms.items() if n != "member"}
