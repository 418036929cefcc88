"""Running sums that start from a number: what adds to them, and whether what they start with is still there when the first term comes."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from cake_ir.fact import fact
from cake_ir.program import Expr, Program
from cake_ir.record import record
from cake_ir.types import FragT
from cake_verify.analyses.sites import Site, sites, starts_anew

STARTS = frozenset({"frag", "rowvec", "colvec"})
SMALL = 1e-3
"""What a text starts a sum from so that it may be divided by."""
_LOW = -1e4
"""A number that a maximum starts from and no score comes near: the exponential of it less a score is zero."""
EXPONENTIALS = frozenset({"exp", "exp2", "exp2_fma"})


@record(eq=False)
class Sum:
    """A place that starts from a number other than zero at `start` and is then added to, first at `terms[0]`; `factors` are what it is multiplied by meanwhile."""

    role: str
    name: str
    type: FragT
    number: int | float
    start: Site
    terms: tuple[Site, ...]
    factors: tuple[tuple[Site, Expr], ...]


@fact
def started_sums(program: Program) -> tuple[Sum, ...]:
    """The sums of a program that start from a number other than zero."""
    return tuple(_sums(program))


def number_of(e: Expr | None) -> int | float | None:
    """The number, other than zero, that a vector or a tile is made of."""
    init = e.attrs.get("init") if isinstance(e, Expr) and e.op in STARTS else None
    return init if isinstance(init, (int, float)) and not isinstance(init, bool) and init and isfinite(init) and abs(init) >= SMALL else None


def _sums(program: Program) -> Iterator[Sum]:
    found = sites(program)
    writers: dict[str, dict[str, list[Site]]] = {}
    for (role, name), bound in found.results.items():
        for b in bound:
            e = b.op.operands.get("value")
            number = number_of(e) if isinstance(e, Expr) else None
            if number is None or not isinstance(e, Expr) or not isinstance(e.type, FragT) or (role, name) in found.bindings:
                continue
            if role not in writers:
                writers[role] = _writers(found.of_role(role))
            behind = [s for s in writers[role].get(name, ()) if s.order > b.order]
            terms, factors = _updates(name, b, behind)
            if terms:
                yield Sum(role, name, e.type, number, b, terms, factors)


def _writers(own: tuple[Site, ...]) -> dict[str, list[Site]]:
    """Every operation that writes a place, by its name: assignments and products."""
    out: dict[str, list[Site]] = {}
    for s in own:
        acc = s.op.operands.get("acc")
        for name in (*s.targets, *((str(acc.attrs["name"]),) if isinstance(acc, Expr) and acc.op == "var" else ())):
            out.setdefault(name, []).append(s)
    return out


def _updates(name: str, start: Site, behind: list[Site]) -> tuple[tuple[Site, ...], tuple[tuple[Site, Expr], ...]]:
    """What adds to a place before it gets another value, and what multiplies it up to the last term, or in a loop with one."""
    terms: list[Site] = []
    factors: list[tuple[Site, Expr]] = []
    for s in behind:
        if s.path[: len(start.path)] != start.path:
            break
        if s.op.name == "mma":
            if starts_anew(s.op):
                break
            terms.append(s)
            continue
        e = s.op.operands.get("value")
        parts = _parts(e, name) if isinstance(e, Expr) and len(s.targets) == 1 else None
        if parts is None:
            break
        factor, added = parts
        if factor is not None:
            factors.append((s, factor))
        if added is not None:
            terms.append(s)
    if not terms:
        return (), ()
    within = {id(x) for s in terms for x in s.loops[len(start.loops) :]}
    return tuple(terms), tuple([(s, f) for s, f in factors if s.order <= terms[-1].order or any(id(x) in within for x in s.loops)])


def _parts(e: Expr, name: str) -> tuple[Expr | None, Expr | None] | None:
    """The factor and the term of `x = x * f + e`, either of which may be missing; None for anything else."""
    if sum(n.op == "var" and n.attrs["name"] == name for n in e.parts()) != 1:
        return None
    if e.op == "fma":
        a, b, c = e.args
        if _is(c, name):
            return None, Expr("mul", (a, b), {}, e.type)
        return (b, c) if _is(a, name) else (a, c) if _is(b, name) else None
    if e.op == "sub" and (factor := _factor(e.args[0], name)) is not None:
        return factor[0], e.args[1]
    if e.op == "add":
        for x, other in (e.args, e.args[::-1]):
            if (factor := _factor(x, name)) is not None:
                return factor[0], other
        return None
    factor = _factor(e, name)
    return (factor[0], None) if factor is not None and factor[0] is not None else None


def _factor(e: Expr, name: str) -> tuple[Expr | None] | None:
    """What a place is multiplied by, (None,) where it stands by itself."""
    if _is(e, name):
        return (None,)
    if e.op == "mul":
        a, b = e.args
        return (b,) if _is(a, name) else (a,) if _is(b, name) else None
    return None


def _is(e: Expr, name: str) -> bool:
    return e.op == "var" and e.attrs["name"] == name


def added(s: Site, name: str) -> Expr | None:
    """What an assignment adds to a place; None for a product."""
    e = s.op.operands.get("value")
    parts = _parts(e, name) if isinstance(e, Expr) else None
    return parts[1] if parts is not None else None


def kept(program: Program, x: Sum) -> bool:
    """Whether what a sum starts with is certainly still part of it when terms have come: nothing multiplies it, or what multiplies it is no zero in the first round."""
    return all(_finite_factor(program, x, f) for _, f in x.factors)


def _finite_factor(program: Program, x: Sum, factor: Expr) -> bool:
    """Whether a factor is known to leave something: a number, an argument, what is read from memory one by one, the exponential of such, or of a maximum that starts from a score."""
    if not isinstance(factor.type, FragT):
        return not any(n.op in ("where", "select") for n in factor.parts())
    made = _made(program, x.role, factor)
    if made is None or made.op not in EXPONENTIALS:
        return False
    of = _unscaled(made.args[0])
    while of.op == "var" and (deeper := _made(program, x.role, of)) is not None and deeper is not of:
        of = _unscaled(deeper)
    if of.op != "sub":
        return False
    older = _unscaled(of.args[0])
    if older.op != "var":
        return False
    name = str(older.attrs["name"])
    before = [b for b in sites(program).results.get((x.role, name), ()) if b.order < x.terms[0].order and not any(y in b.loops for y in x.terms[0].loops[len(x.start.loops) :])]
    values = [v for b in before if isinstance(v := b.op.operands.get("value"), Expr)]
    if not values or not isinstance(before[-1].op.operands.get("value"), Expr):
        return False
    if any(n.op == "reduce" and n.attrs.get("op") == "max" for v in values for n in v.parts()):
        return True  # a first block was looked at in front of the loop
    value = values[-1]
    if value.op in STARTS:
        init = value.attrs.get("init")
        return isinstance(init, (int, float)) and init > _LOW
    numbers = [v for n in value.parts() for v in (n.attrs.get("value"), n.attrs.get("init")) if isinstance(v, (int, float))]
    return min(numbers, default=0) > _LOW and all(map(isfinite, numbers)) and any(n.op in STARTS for n in value.parts())


def _made(program: Program, role: str, e: Expr) -> Expr | None:
    """What the one assignment of a name gives it."""
    if e.op != "var":
        return e
    bound = sites(program).results.get((role, str(e.attrs["name"])), ())
    value = bound[0].op.operands.get("value") if len(bound) == 1 and bound[0].op.name == "compute" else None
    return value if isinstance(value, Expr) else None


def _unscaled(e: Expr) -> Expr:
    """What a number or a scalar multiplies."""
    while e.op == "mul" and any(not isinstance(a.type, FragT) for a in e.args) and any(isinstance(a.type, FragT) for a in e.args):
        e = next(a for a in e.args if isinstance(a.type, FragT))
    return e


__all__ = ["SMALL", "STARTS", "Sum", "added", "kept", "number_of", "started_sums"]
