"""Registers that shift: a loop reads the next row into one name and hands the rows before it on from name to name.

`a = b; b = c` behind a read of `c` at place P(i) means that round i finds P(i - 1) in `b` and P(i - 2) in `a`. So what these names start with
is what the rounds before the first would have read, wherever it is read from the same tensor or view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cake_ir.fact import fact
from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt, statements
from cake_ir.record import record
from cake_ir.types import FragT
from cake_verify.analyses.fixed_scalars import in_place
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import canonical, linear, resolver_of

Conds = tuple[tuple[Expr, bool], ...]
Linear = tuple[int, dict[str, int]]

_READS = frozenset({"load", "ld"})
MOST = 8
"""Ways to what a name holds that are followed."""


@record(eq=False)
class Start:
    """What a name may start with: a read, or None for something else; the conditions under which it does."""

    conds: Conds
    read: Op | None
    number: object = None


@record(eq=False)
class Chain:
    """A loop whose round reads `newest`, and the names that hold what the rounds before it read, newest first, with the statements that shift them."""

    loop: For
    newest: Op
    name: str
    names: tuple[str, ...]
    shifts: tuple[Assign, ...]
    starts: tuple[tuple[Start, ...], ...]


def chains(program: Program) -> Iterator[tuple[str, Chain]]:
    """The shifting names of a program, with their role."""
    roles = _handing_on(program)
    for block in program.body if roles else ():
        if block.role in roles:
            for chain in _body(block.body, {}):
                yield block.role, chain


def _handing_on(program: Program) -> set[str]:
    """The roles that copy what they read in a loop of numbers to another name there."""
    found = sites(program)
    read = {(s.role.name, t) for s in found.of(*_READS) if s.loops and s.loops[-1].kind != "tiles" for t in s.targets}
    copied: set[str] = set()
    for s in found.of("compute") if read else ():
        e, cast = s.op.operands["value"], False
        while isinstance(e, Expr) and e.op == "cast":
            e, cast = e.args[0], True
        if isinstance(e, Expr) and e.op == "var" and (s.role.name, str(e.attrs["name"])) in read:
            if cast:
                read.update((s.role.name, t) for t in s.targets)
            else:
                copied.add(s.role.name)
    copied |= {role for (role, _), bound in (found.bindings.items() if read else ()) for b in bound if b.value.op == "var" and (role, str(b.value.attrs["name"])) in read}
    return copied


def _body(body: tuple[Stmt, ...], known: dict[str, tuple[Start, ...]]) -> Iterator[Chain]:
    for s in body:
        if isinstance(s, For):
            bound = _bound(s.body)
            if s.kind != "tiles" and s.lo is not None:
                yield from _chain(s, known)
            yield from _body(s.body, {k: v for k, v in known.items() if k not in bound})
            for name in bound:
                known.pop(name, None)
        elif isinstance(s, If):
            arms = [dict(known), dict(known)]
            yield from _body(s.then, arms[0])
            yield from _body(s.orelse, arms[1])
            for name in _bound(s.then) | _bound(s.orelse):
                ways = [Start(((s.cond, arm), *w.conds), w.read, w.number) for arm, held in ((True, arms[0]), (False, arms[1])) for w in held.get(name, ())]
                known[name] = tuple(ways) if len(ways) <= MOST else ()
        elif isinstance(s, Assign):
            held = _held(s, known)
            for name in s.targets:
                known[name] = held


def _bound(body: tuple[Stmt, ...]) -> set[str]:
    return {t for s in statements(body) if isinstance(s, Assign) for t in s.targets}


def _held(s: Assign, known: Mapping[str, tuple[Start, ...]]) -> tuple[Start, ...]:
    """What a statement binds: a read, a copy of a name, a number."""
    if isinstance(s.value, Op) and s.value.name in _READS:
        return (Start((), s.value),)
    e = _value(s)
    if e is None:
        return ()
    if e.op == "var":
        return known.get(str(e.attrs["name"]), ())
    number = e.attrs.get("value") if e.op == "const" else e.attrs.get("init") if e.op in ("frag", "rowvec", "colvec") else None
    return (Start((), None, number),) if number is not None else ()


def _value(s: Assign) -> Expr | None:
    """The expression that a statement binds, without casts."""
    e = s.value.operands.get("value") if isinstance(s.value, Op) and s.value.name == "compute" else s.value
    while isinstance(e, Expr) and e.op == "cast":
        e = e.args[0]
    return e if isinstance(e, Expr) else None


def _chain(loop: For, known: Mapping[str, tuple[Start, ...]]) -> Iterator[Chain]:
    """What a loop's rounds hand on from what they read."""
    copies: dict[str, tuple[int, Assign]] = {}  # by what is copied, where and to which name
    read: dict[str, Op] = {}
    twice: set[str] = set()
    seen: set[str] = set()
    for k, s in enumerate(loop.body):
        if not isinstance(s, Assign) or len(s.targets) != 1:
            continue
        name, e = s.targets[0], _value(s)
        twice |= {name} & seen
        seen.add(name)
        if isinstance(s.value, Op) and s.value.name in _READS:
            read[name] = s.value
        elif e is not None and e.op == "var":
            source = str(e.attrs["name"])
            if source in read and name not in known:
                read[name] = read[source]  # the same under another name, as a cast gives it
            elif name in known:
                twice |= {source} & set(copies)
                copies[source] = k, s
    for name in read:
        if name not in copies:
            continue
        names, shifts = [], []
        at, current = len(loop.body), name
        while current in copies and copies[current][0] < at:
            at, s = copies[current]
            current = s.targets[0]
            names.append(current)
            shifts.append(s)
        if names and not twice & {name, *names} and not any(t in _bound(tuple(x for x in loop.body if not isinstance(x, Assign))) for t in (name, *names)):
            yield Chain(loop, read[name], name, tuple(names), tuple(shifts), tuple(known.get(n, ()) for n in names))


# ------------------------------------------------------------------ where a read is


@record(eq=False)
class Place:
    """Where a read is: what it reads from, and where along every axis, as sums."""

    of: str
    at: tuple[Linear, ...]
    exprs: tuple[Expr, ...]


def place(program: Program, role: str, op: Op) -> Place | None:
    """The place of a read."""
    return _place(program, role, op.id)


@fact
def place_before(program: Program, role: str, number: int, var: str, back: int) -> Place | None:
    """Where the read of that number would be in the round so many before the first of the loop of a variable."""
    lo = next(loop.lo for loop in sites(program).loops[role, var] if loop.lo is not None)
    lo = resolver_of(program, role)(lo)
    known = lo.attrs["value"] if lo.op == "const" else None
    value = Expr("const", (), {"value": known - back}, lo.type) if isinstance(known, int) else Expr("sub", (lo, Expr("const", (), {"value": back}, lo.type)), {}, lo.type)
    return _located(program, role, program.ops[number], var, value)


@fact
def _place(program: Program, role: str, number: int) -> Place | None:
    return _located(program, role, program.ops[number])


def _located(program: Program, role: str, op: Op, var: str = "", value: Expr | None = None) -> Place | None:
    """The place of a read, `value` in the place of a variable."""
    resolve = resolver_of(program, role)

    def put(e: Expr) -> Expr:
        e = resolve(e)
        return in_place(e, var, value) if value is not None else e

    coords, view, i = op.operands.get("coords"), op.operands.get("view"), op.operands.get("i")
    shape = str(op.attrs.get("shape"))
    if isinstance(coords, tuple):
        if any(not isinstance(e, Expr) or isinstance(e.type, FragT) for e in coords):
            return None
        exprs = tuple([put(e) for e in coords])
        return Place(f"{op.attrs.get('tensor')} {shape}", tuple(map(linear, exprs)), exprs)
    if not isinstance(view, Expr):
        return None
    view, starts, cut = put(view), [], []
    while view.op in ("rows", "cols"):
        starts.append(view.args[1])
        cut.append(f"{view.op} {view.attrs.get('n')}")
        view = view.args[0]
    if isinstance(i, Expr):
        starts.append(put(i))
    return Place(f"{canonical(view)} {cut}", tuple(map(linear, starts)), tuple(starts)) if starts else None


__all__ = ["Chain", "Conds", "Place", "Start", "chains", "place", "place_before"]
