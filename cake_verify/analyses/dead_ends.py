"""Ends that never come: a loop, or the tiles of a scheduler, whose count rounds down, and inside a mask or a `lm.min` that is there for the last round, which is the one that the count leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import beside, floor_divisions, mentions
from cake_ir.derive.structure import nodes, stated
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.span import Span
from cake_ir.types import FragT
from cake_verify.analyses.rounded_down import leaves_nothing
from cake_verify.analyses.runs import compared, run_of
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import Loop, canonical, linear, loops, resolver_of, spoken, written


def dead_ends(program: Program) -> Iterator[Fault]:
    """At most one fault: a count that rounds down although its last round is prepared for."""
    if "floordiv" not in mentions(program) and not floor_divisions(program):
        return
    for x in loops(program):
        if x.stmt.kind == "range" and x.lo.op == "const" and x.lo.attrs["value"] == 0 and (step := _step(program, x.role, x.hi)) and (mask := _mask(program, x, step)) is not None and not _elsewhere(program, x, step):
            yield _fault(x.hi if x.stmt.hi is None or x.stmt.hi.op != "floordiv" else x.stmt.hi, step, x.stmt.head, mask, f"every round of `{written(x.stmt.var)}` has {step}", x.role)
            return
    for d in program.schedulers.values():
        for name, count in zip(d.names, d.tiles, strict=False) if d.kind != "grouped" else ():
            whole = resolver_of(program, "")(count)
            step = _step(program, "", whole)
            share = next((x for x in loops(program) if _share(x, f"tile.{name}", whole.args[0], step)), None) if step else None
            if share is not None:
                yield _fault(whole, step, count.span if count.span.line else d.span, share.stmt.head, f"every tile along `{name}` has {step}", share.role)
                return


def _step(program: Program, role: str, e: Expr) -> int:
    """The number that a count divides by and rounds down, 0 where it does not, or where nothing can be left."""
    step = e.args[1].attrs.get("value") if e.op == "floordiv" else None
    if not isinstance(step, int) or step < 2 or e.args[0].op == "const" or leaves_nothing(program, role or None, *e.args):
        return 0
    rest, resolve = canonical(Expr("mod", e.args)), resolver_of(program, "")
    return 0 if any(c.op == "eq" and canonical(c.args[0]) == rest for a in program.assumes for c in stated(resolve(a.cond))) else step


def _mask(program: Program, x: Loop, step: int) -> Span | None:
    """A mask in a loop that ends where what is counted does, tiles of `step` elements being a round."""
    whole, resolve = x.hi.args[0], resolver_of(program, x.role)
    for s in sites(program).of_role(x.role):
        if not any(y is x.stmt for y in s.loops):
            continue
        for n in nodes(program)[s.op.id]:
            ends: list[Expr] = []
            if n.op == "in_bounds":
                ends = [resolve(a) for a in n.args[1:]]
            elif n.op in ("lt", "le", "gt", "ge") and any(isinstance(a.type, FragT) for a in n.args):
                c = compared(program, x.role, n)
                run = run_of(program, x.role, c.args[0]) if c.op == "lt" and not isinstance(c.args[1].type, FragT) else None
                ends = [Expr("sub", (resolve(c.args[1]), run[0]))] if run is not None else []
            if any(linear(Expr("sub", (end, whole))) == (0, {f"?{x.stmt.var}": -step}) for end in ends):
                return n.span if n.span.line else s.op.span
    return None


def _elsewhere(program: Program, x: Loop, step: int) -> bool:
    """Whether the text speaks of what is left, or of where the whole tiles end, in another place: then it may be looked after there."""
    texts, resolve = {canonical(x.hi), canonical(Expr("mod", x.hi.args))}, resolver_of(program, x.role)
    for s in sites(program).of_role(x.role):
        for o in s.op.operands.values():
            for e in o if isinstance(o, tuple) else (o,):
                if isinstance(e, Expr) and not isinstance(e.type, FragT) and any(n.op in ("floordiv", "mod") and canonical(n) in texts for n in resolve(e).parts()):
                    return True
    others = [y for y in loops(program) if y.role == x.role and y.stmt is not x.stmt]
    around = [*(y.lo for y in others), *(y.hi for y in others if canonical(y.hi) != canonical(x.hi))]
    return any(n.op in ("floordiv", "mod") and canonical(n) in texts for e in around for n in e.parts()) or any(n.op == "mod" for n in beside(program))


def _share(x: Loop, field: str, whole: Expr, step: int) -> bool:
    """Whether a loop goes over one tile's share of what is counted, up to where the next begins or all of it ends."""
    if x.hi.op != "min" or linear(x.lo) != (0, {field: step}):
        return False
    return any(canonical(a) == canonical(whole) and linear(b) == (step, {field: step}) for a, b in (x.hi.args, x.hi.args[::-1]))


def _fault(count: Expr, step: int, at: Span, end: Span, why: str, role: str) -> Fault:
    all_ = spoken(count.args[0])
    text = f"({all_}) // {step}" if count.args[0].op in ("add", "sub") else f"{all_} // {step}"
    message = f"`{text}` rounds down: what `{all_}` has behind the last whole {step} is left out, and the end that is asked for inside never comes, as {why}"
    return Fault("Q012", message, at, ((end, "asks where the last one ends"),), f"round up, `lm.cdiv({all_}, {step})`, or state `lm.assume({all_} % {step} == 0)`", (), {"role": role, "found": text, "expected": all_})


__all__ = ["dead_ends"]
