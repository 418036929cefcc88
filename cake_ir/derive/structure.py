"""Where operations stand: their role, the members that can execute them, and the loops and branches around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cake_ir.fact import fact
from cake_ir.program import Expr, For, If, Let, Op, Program, RoleBlock, Stmt, op_of, statements
from cake_ir.record import record


@record(eq=False)
class Site:
    """One operation in its place: `around` lists the enclosing loops and branches, outermost first, a branch with the arm taken."""

    op: Op
    stmt: Stmt
    role: str
    around: tuple[tuple[For | If, bool], ...]

    @property
    def loops(self) -> tuple[For, ...]:
        """The loops around it, outermost first."""
        return tuple(s for s, _ in self.around if isinstance(s, For))


@fact
def sites(program: Program) -> tuple[Site, ...]:
    """Every operation that a role block executes, by operation id."""
    found: dict[int, Site] = {}
    for block in program.body:
        _sites(block.body, block.role, (), found)
    return tuple([found[i] for i in sorted(found)])


def _sites(body: tuple[Stmt, ...], role: str, around: tuple[tuple[For | If, bool], ...], found: dict[int, Site]) -> None:
    for stmt in body:
        if isinstance(stmt, For):
            _sites(stmt.body, role, (*around, (stmt, True)), found)
        elif isinstance(stmt, If):
            _sites(stmt.then, role, (*around, (stmt, True)), found)
            _sites(stmt.orelse, role, (*around, (stmt, False)), found)
        elif (op := op_of(stmt)) is not None:
            found[op.id] = Site(op, stmt, role, around)


@fact
def listed(program: Program) -> tuple[tuple[RoleBlock, tuple[Stmt, ...]], ...]:
    """Every role block with all of its statements in text order, nested ones included."""
    return tuple((block, tuple(statements(block.body))) for block in program.body)


@fact
def nodes(program: Program) -> tuple[tuple[Expr, ...], ...]:
    """By operation id every node of every operand's expression, children first: rules that look at all of them need not walk again."""
    out = []
    for op in program.ops:
        found: list[Expr] = []
        for operand in op.operands.values():
            for e in operand if isinstance(operand, tuple) else (operand,):
                if e is None:
                    continue
                if e.args:
                    found += e.parts()
                else:  # as many are
                    found.append(e)
        out.append(tuple(found))
    return tuple(out)


_FOLD = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b, "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
}  # fmt: skip


def for_member(e: Expr, member: int) -> Any:
    """The value of a scalar expression for one member where only `role.index` and constants decide it, else None."""
    if e.op == "const":
        return e.attrs["value"]
    if e.op == "role_index":
        return member
    args = [for_member(a, member) for a in e.args]
    if e.op == "not":
        return None if args[0] is None else not args[0]
    if e.op == "and":
        return False if False in args else None if None in args else True
    if e.op == "or":
        return True if True in args else None if None in args else False
    if None in args:
        return None
    if e.op in ("floordiv", "mod"):
        return None if not args[1] else args[0] // args[1] if e.op == "floordiv" else args[0] % args[1]
    return _FOLD[e.op](*args) if e.op in _FOLD else None


def members_at(program: Program, site: Site) -> tuple[int, ...]:
    """The members of the role that can reach the operation: those that no branch on `role.index` keeps away."""

    def reached(member: int) -> bool:
        for s, arm in site.around:
            if isinstance(s, If):
                value = for_member(s.cond, member)
                if value is not None and bool(value) != arm:
                    return False
        return True

    return tuple(i for i in range(program.roles[site.role].members) if reached(i))


OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
"""What a comparison of integers is where it does not hold."""
TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
"""What a comparison is with its sides exchanged."""


def conjuncts(e: Expr) -> list[Expr]:
    """The distinct conditions that hold where `e` does, as they are written."""
    return _together(e, False)


def stated(e: Expr) -> list[Expr]:
    """The conditions of an assumption, each as a comparison with its numbers on the right, however it is written: `not K <= 0`, `0 < K`, `64 * G == K`."""
    return [_plain(c) for c in _together(e, True)]


def _together(e: Expr, turned: bool) -> list[Expr]:
    """The parts that an `and`, or `&` of masks, holds together, at any depth; `turned` looks through a `not`."""
    found: dict[int, Expr] = {}
    _part_of(e, turned, found)
    return [c for c in found.values() if not _both(c)]


def _both(e: Expr) -> bool:
    """Whether two conditions hold together: numbers are combined with `&`, too."""
    return e.op == "and" or (e.op == "bitand" and getattr(e.type, "dtype", "") == "bool")


def _part_of(e: Expr, turned: bool, found: dict[int, Expr]) -> None:
    if id(e) in found:
        return
    if turned and e.op == "not" and (holds := _denied(e.args[0])) is not None:
        _part_of(holds, turned, found)
        return
    found[id(e)] = e
    for a in e.args if _both(e) else ():
        _part_of(a, turned, found)


def _denied(e: Expr) -> Expr | None:
    """What holds where `e` does not, if that can be said without a `not` in front."""
    if e.op in OPPOSITE and not _has_fractions(e):
        return Expr(OPPOSITE[e.op], e.args, e.attrs, e.type, e.span)
    if e.op == "or":
        return Expr("and", tuple(Expr("not", (a,), {}, e.type, a.span) for a in e.args), {}, e.type, e.span)
    return e.args[0] if e.op == "not" else None


def _has_fractions(e: Expr) -> bool:
    """Whether a comparison is one of floats, of which NaN makes both sides false."""
    return any(getattr(a.type, "dtype", "").startswith(("f", "b")) for a in e.args)


def _plain(c: Expr) -> Expr:
    """A comparison with a number that stands alone, or multiplies, on the right."""
    if c.op not in TURNED or (c.args[1].op == "const" and c.args[0].op in ("param", "mod")):
        return c
    left, right = _scaled(c.args[0]), _scaled(c.args[1])
    if left.op == "const" and right.op != "const":
        return Expr(TURNED[c.op], (right, left), c.attrs, c.type, c.span)
    return c if left is c.args[0] and right is c.args[1] else Expr(c.op, (left, right), c.attrs, c.type, c.span)


def _scaled(e: Expr) -> Expr:
    return Expr("mul", e.args[::-1], e.attrs, e.type, e.span) if e.op == "mul" and e.args[0].op == "const" and e.args[1].op != "const" else e


LARGE = 1 << 128
"""More than any integer that somebody asks about: squares of squares double their digits each, and more digits than that say nothing more."""


def definitions(lets: Mapping[str, Let], e: Expr) -> list[Let]:
    """What an expression's names are defined by, each behind those that it reads itself: whoever works them out in this order never goes deep."""
    found: dict[str, Let] = {}
    waiting, begun = [e], set[int]()
    while waiting:
        read = [lets[n] for x in waiting[-1].parts() if x.op == "var" and (n := str(x.attrs["name"])) in lets and n not in found]
        if id(waiting[-1]) not in begun:
            begun.add(id(waiting[-1]))
            if read:
                waiting += [d.value for d in reversed(read)]
                continue
        waiting.pop()
        for d in read:
            found.setdefault(d.name, d)
    return list(found.values())
