"""Edits that mend a fault, as text changes of the schedule."""

from __future__ import annotations

from operator import is_

from cake_ir.fault import Edit, Fix, Grade
from cake_ir.program import Expr, For, If, Op, Program
from cake_ir.span import Span
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.trips import spoken


def before(stmt_span: Span, *lines: str, grade: Grade = "likely", title: str = "") -> Fix:
    """Put lines in front of a statement, indented like it."""
    pad = "\n" + " " * (stmt_span.column - 1)
    return Fix((Edit(stmt_span.start(), "".join(text + pad for text in lines)),), grade, title or f"insert `{'; '.join(lines)}`")


def after(stmt_span: Span, *lines: str, grade: Grade = "likely", title: str = "") -> Fix:
    """Put lines behind a statement, indented like it; a comment at its end stays on the last of them."""
    pad = "\n" + " " * (stmt_span.column - 1)
    return Fix((Edit(stmt_span.end(), "".join(pad + text for text in lines)),), grade, title or f"insert `{'; '.join(lines)}`")


def replace(span: Span, text: str, grade: Grade = "likely", title: str = "") -> Fix:
    """Write something else in place of a span."""
    return Fix((Edit(span, text),), grade, title or f"write `{text}`")


def exchanged(program: Program, op: Op, a: int, b: int) -> Edit:
    """The coordinates of an access with two of them in each other's place."""
    coords = op.operands["coords"]
    assert isinstance(coords, tuple)  # what has axes to exchange has coordinates
    texts = [spoken(named(program, e)) for e in coords]
    texts[a], texts[b] = texts[b], texts[a]
    return Edit(op.spans["coords"], f"({', '.join(texts)})")


def named(program: Program, e: Expr) -> Expr:
    """An expression with the names of tunables where the author wrote them: for a number in a place that is as long as the name of the one tunable of that value.

    A number beside something else has the place of both, so that its own is what is left of that, the sign and its spaces.
    """
    def name(n: Expr, length: int) -> Expr:
        if n.op != "const" or not n.span.line:
            return n
        found = [t for t, v in program.tunables.items() if v == n.attrs["value"] and type(v) is type(n.attrs["value"]) and len(t) == length]
        return Expr("param", (), {"name": found[0]}, n.type, n.span) if len(found) == 1 else n

    made: dict[int, Expr] = {}
    for n in e.parts():  # operands first
        args = [made[id(a)] for a in n.args]
        if len(args) == 2:
            args = [name(a, _width(n) - _width(other) - 3) if a.op == "const" and a.span == n.span else a for a, other in zip(args, n.args[::-1], strict=True)]
        made[id(n)] = n if all(map(is_, args, n.args)) else Expr(n.op, tuple(args), n.attrs, n.type, n.span)
    return made[id(e)]


def _width(e: Expr) -> int:
    return e.span.end_column - e.span.column if e.span.line == e.span.end_line else 0


def add_argument(call: Span, text: str, grade: Grade = "likely") -> Fix:
    """Add an argument at the end of a call."""
    at = Span(call.end_line, call.end_column - 1, call.end_line, call.end_column - 1)
    return Fix((Edit(at, f", {text}"),), grade, f"add `{text}`")


def move_before(moved: Span, stmt_span: Span, text: str, grade: Grade = "likely") -> Fix:
    """Take a statement away and put its text in front of another one."""
    pad = "\n" + " " * (stmt_span.column - 1)
    return Fix((Edit(moved, "pass"), Edit(stmt_span.start(), text + pad)), grade, f"move `{text}` in front of it")


def remove(stmt_span: Span, grade: Grade = "idea") -> Fix:
    """Leave a statement out; `pass` keeps its block valid."""
    return Fix((Edit(stmt_span, "pass"),), grade, "leave it out")


def stmt_span(plan: Plan, op: Op) -> Span:
    """The span of the statement of the text that executes an operation: a call inside an expression is bound in front of its statement."""
    site = plan.sites[op.id]
    around = [(s.body if isinstance(s, For) else s.then if arm else s.orelse) for s, arm in site.around]
    blocks = around[-1:] or [b.body for b in plan.program.body if b.role == site.role]
    for body in blocks:
        at = next((i for i, s in enumerate(body) if s is site.stmt), None)
        for s in body[at + 1 :] if at is not None else ():
            if _covers(s.head if isinstance(s, (For, If)) else s.span, site.stmt.span):
                return s.span
    return site.stmt.span


def _covers(outer: Span, inner: Span) -> bool:
    return outer != inner and (outer.line, outer.column) <= (inner.line, inner.column) and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)


def level_with(plan: Plan, op: Op, other: Op) -> Span:
    """The statement around `op` that stands in a block which also holds `other`: in front of branches that `other` is not in."""
    site, theirs = plan.sites[op.id], {id(s) for s, _ in plan.sites[other.id].around}
    for s, _ in site.around:
        if id(s) not in theirs:
            return s.span
    return site.stmt.span


def meet_before(plan: Plan, op: Op, barrier: str) -> Fix:
    """A meeting in front of an operation: outside conditions on the member, where all members come to the barrier."""
    site = plan.sites[op.id]
    named = plan.program.named.get(barrier)
    if named is not None and not named.per_member:
        for s, _ in site.around:
            if isinstance(s, If) and any(n.op == "role_index" for n in s.cond.parts()):
                return before(s.span, f"lm.sync({barrier})")
    return before(site.stmt.span, f"lm.sync({barrier})")


def own_barrier(program: Program, role: str) -> str | None:
    """A named barrier that the warps of one member of the role can meet at."""
    alone = [b.name for b in program.named.values() if b.roles == (role,)]
    per = [b.name for b in program.named.values() if b.roles == (role,) and b.per_member]
    found = per or alone
    return found[0] if found else None
