"""Q030: a condition on a flag tells its values apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cake_ir.derive.structure import TURNED, conjuncts, listed
from cake_ir.fact import fact
from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, If, Program
from cake_verify.analyses import edits
from cake_verify.analyses.sites import Binding, sites
from cake_verify.analyses.trips import spoken, written
from cake_verify.rule import Page
from cake_verify.rules.examples import FLAG, edit

PAGE = Page(
    code="Q030",
    title="a flag that nothing tells apart",
    statement="A scalar that is only ever set to fixed numbers, and to more than one, has both outcomes in every comparison with a number that a branch makes.",
    why="A flag says that a search has ended or that a request was refused. A condition that holds for all of its values, or for none, goes on as if nothing had happened, or never does what it guards.",
    failing=edit(FLAG, ("looking > 0", "looking >= 0")),
    passing=FLAG,
    limits="Names whose every assignment in their role is a number, an arm of `lm.where` that is one, or the name itself. Where a name has one value only nothing is said.",
)

_HOLDS = {"lt": int.__lt__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__, "eq": int.__eq__, "ne": int.__ne__}
_SIGN = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def check(program: Program) -> Iterator[Fault]:
    flags = _flags(program)
    for block, body in listed(program) if flags else ():
        for s in body:
            if not isinstance(s, If):
                continue
            for c in conjuncts(s.cond):
                if (found := _compared(c)) is None or (values := flags.get((block.role, found[0]))) is None:
                    continue
                name, op, number = found
                outcomes = {bool(_HOLDS[op](v, number)) for v in values}
                if len(outcomes) == 1:
                    yield _fault(program, block.role, s, c, name, values, True in outcomes)


@fact
def _flags(program: Program) -> dict[tuple[str, str], tuple[int, ...]]:
    """The numbers that a name of a role is set to, for names that are set to nothing else and to more than one."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for (role, name), bound in sites(program).bindings.items():
        if len(bound) > 1 and (role, name) not in sites(program).results and (values := _values(name, bound)) is not None and len(values) > 1:
            found[role, name] = tuple(sorted(values))
    return found


def _values(name: str, bound: Iterable[Binding]) -> set[int] | None:
    left, values = [b.value for b in bound], set[int]()
    while left:
        e = left.pop()
        if e.op == "const" and isinstance(v := e.attrs["value"], int):
            values.add(int(v))
        elif e.op == "select":
            left += e.args[1:]
        elif e.op != "var" or e.attrs["name"] != name:
            return None
    return values


def _compared(c: Expr) -> tuple[str, str, int] | None:
    """A comparison of a name with a number: the name, the relation, the number."""
    if c.op not in _HOLDS:
        return None
    (a, b), op = c.args, c.op
    if a.op == "const":
        a, b, op = b, a, TURNED.get(op, op)
    number = b.attrs.get("value") if b.op == "const" else None
    return (str(a.attrs["name"]), op, int(number)) if a.op == "var" and isinstance(number, int) else None


def _fault(program: Program, role: str, branch: If, c: Expr, name: str, values: tuple[int, ...], holds: bool) -> Fault:
    said = written(name)
    *rest, last = (str(v) for v in values)
    sets = {b.value.span.line: (b.value.span, "set here") for b in sites(program).bindings[role, name] if b.value.span.line}
    fixes: tuple[Fix, ...] = ()
    if c.span.line and c.span.line == c.span.end_line:
        relation, number = next((op, n) for op in (c.op, "gt", "eq") for n in values if len({_HOLDS[op](v, n) for v in values}) == 2)
        fixes = (edits.replace(c.span, f"{said} {_SIGN[relation]} {number}"),)
    return Fault("Q030", f"`{spoken(c)}` {'always holds' if holds else 'never holds'}: `{said}` is {', '.join(rest)} or {last}, wherever it is set", c.span if c.span.line else branch.head,
                 tuple(sets.values())[:3], "compare with what tells its values apart", fixes, {"name": said, "role": role})  # fmt: skip
