"""Accesses of one tensor that a text tells apart though memory or fragments place them: strides that never meet, as the even columns beside the odd ones
(`2 * lm.iota(x, 0)` and `2 * lm.iota(x, 0) + 1`), two arms of a branch that store to the same place, of which each round takes one, elements in front of
an end beside what lies there, and shares between sums of offsets."""

from __future__ import annotations

from math import gcd

from cake_ir.fact import fact
from cake_ir.program import AssumeValues, Expr, For, Program
from cake_ir.types import FragT
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.runs import defined
from cake_verify.analyses.sites import Site, covered, sites
from cake_verify.analyses.trips import canonical, linear, resolver_of

_Form = tuple[int, dict[str, int]]
"""A number, and by how much each term moves the place; the elements of the fragment itself are the term `#`."""


@fact
def never_meet(program: Program, one: int, other: int) -> bool:
    """Whether two accesses of one tensor leave different rests along some axis, whatever tiles they belong to."""
    a, b = (s.op.operands.get("coords") for s in (_site(program, one), _site(program, other)))
    if not isinstance(a, tuple) or not isinstance(b, tuple) or len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if isinstance(x.type, FragT) and isinstance(y.type, FragT):
            mine, theirs = _form(program, _site(program, one).role.name, x), _form(program, _site(program, other).role.name, y)
            if mine is not None and theirs is not None:
                common = gcd(*mine[1].values(), *theirs[1].values())
                if common and (mine[0] - theirs[0]) % common:
                    return True
    return False


@fact
def one_of_two(program: Program, one: int, other: int) -> bool:
    """Whether two accesses are the arms of one branch, at the same coordinates: together they are one access, which the branch only says how to make."""
    a, b = _site(program, one), _site(program, other)
    x, y, resolve = a.op.operands.get("coords"), b.op.operands.get("coords"), resolver_of(program, a.role.name)
    if a.role is not b.role or a.loops != b.loops or not isinstance(x, tuple) or not isinstance(y, tuple) or [canonical(resolve(e)) for e in x] != [canonical(resolve(e)) for e in y]:
        return False
    arms = {id(branch): arm for branch, arm in a.branches()}
    return any(arms.get(id(branch), arm) is not arm for branch, arm in b.branches())


@fact
def in_front(program: Program, one: int, other: int) -> bool:
    """Whether in one tile the one goes through elements up to an end (`for i in lm.range(n)`), and the other is at that end or behind it; two rounds of one
    loop, whether it goes on by as many elements as it touches."""
    if one == other:
        return _steps_on(program, _site(program, one))
    return _up_to(program, _site(program, one), _site(program, other)) or _up_to(program, _site(program, other), _site(program, one))


def _up_to(program: Program, a: Site, b: Site) -> bool:
    x, y = a.op.operands.get("coords"), b.op.operands.get("coords")
    if a.role is not b.role or not isinstance(x, tuple) or not isinstance(y, tuple) or len(x) != len(y):
        return False
    for k, (e, at) in enumerate(zip(x, y, strict=True)):
        if isinstance(e.type, FragT) or isinstance(at.type, FragT):
            continue
        if _in_turn(program, a, b, k):
            return True
        loop, _, last = _stretch(program, a, e, k)
        if any(x.kind != "tiles" and x in b.loops for x in a.loops) or (loop is not None and loop in b.loops):
            continue
        gap, more = _sum(_stretch(program, b, at, k)[1], last, -1)
        if gap > 0 and not any(more.values()):
            return True
    return False


def _in_turn(program: Program, a: Site, b: Site, axis: int) -> bool:
    """Whether two accesses in one loop take turns along an axis, as the rounds that have been written out two at a time do."""
    resolve, rounds = resolver_of(program, a.role.name), [x for x in a.loops if x.kind != "tiles"]
    (first, terms), (second, others) = (linear(resolve(s.op.operands["coords"][axis])) for s in (a, b))  # type: ignore[index]  # asked by the caller
    each = terms.get(f"?{rounds[0].var}", 0) if len(rounds) == 1 and a.loops == b.loops and terms == others else 0
    return each > 0 and (second - first) % each >= covered(a.op, axis) and (first - second) % each >= covered(b.op, axis)


def _steps_on(program: Program, s: Site) -> bool:
    coords, rounds = s.op.operands.get("coords"), [x for x in s.loops if x.kind != "tiles"]
    if not isinstance(coords, tuple) or len(rounds) != 1:
        return False
    forms = [(k, linear(resolver_of(program, s.role.name)(e))[1]) for k, e in enumerate(coords) if not isinstance(e.type, FragT)]
    return any(terms.get(f"?{rounds[0].var}", 0) >= covered(s.op, k) for k, terms in forms)


def _stretch(program: Program, s: Site, e: Expr, axis: int) -> tuple[For | None, _Form, _Form]:
    """The loop that a coordinate goes along with, if one does, its first element and its last."""
    resolve = resolver_of(program, s.role.name)
    constant, terms = linear(resolve(e))
    loop = next((x for x in s.loops if terms.get(f"?{x.var}", 0) > 0 and x.lo is not None and x.hi is not None), None)
    if loop is None or loop.lo is None or loop.hi is None:
        return None, (constant, terms), (constant + covered(s.op, axis) - 1, terms)
    each, rest = terms[f"?{loop.var}"], {t: n for t, n in terms.items() if t != f"?{loop.var}"}
    return loop, _sum((constant, rest), linear(resolve(loop.lo)), each), _sum((constant + covered(s.op, axis) - each - 1, rest), linear(resolve(loop.hi)), each)


@fact
def by_member(program: Program, one: int, other: int) -> bool:
    """Whether two members of a role have parts of their own along an axis, by their number alone."""
    a, b = _site(program, one), _site(program, other)
    x, y, resolve = a.op.operands.get("coords"), b.op.operands.get("coords"), resolver_of(program, a.role.name)
    if a.role is not b.role or not isinstance(x, tuple) or not isinstance(y, tuple) or len(x) != len(y):
        return False
    for k, (e, at) in enumerate(zip(x, y, strict=True)):
        if not isinstance(e.type, FragT) and not isinstance(at.type, FragT):
            constant, terms = linear(resolve(e))
            if (constant, terms) == linear(resolve(at)) and len(terms) == 1 and next(iter(terms)).startswith("role_index") and next(iter(terms.values())) >= max(covered(a.op, k), covered(b.op, k)):
                return True
    return False


@fact
def shares(program: Program, one: int, other: int) -> bool:
    """Whether in two tiles both stay between sums of sorted offsets at the tile's number and at the next one, `A[b] + B[b]` and `A[b + 1] + B[b + 1]`."""
    a, b = _site(program, one), _site(program, other)
    x, y = a.op.operands.get("coords"), b.op.operands.get("coords")
    if not isinstance(x, tuple) or not isinstance(y, tuple) or len(x) != len(y):
        return False
    return any((mine := _between(program, a, e, k)) is not None and mine == _between(program, b, at, k) for k, (e, at) in enumerate(zip(x, y, strict=True)))


def own_sequences(program: Program, one: int, other: int, tiles: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
    """Whether in two tiles both begin at the running offset of a sequence, each of its own: that a store stays in its sequence is S013's."""
    return any([len(tiles[0]) == len(tiles[1]) == many and tiles[0][k] != tiles[1][k] for many, k in _numbered(program, one, other)])


@fact
def _numbered(program: Program, one: int, other: int) -> tuple[tuple[int, int], ...]:
    """How many fields a tile has and which of them numbers the sequence that both accesses begin in, for each axis along which they do."""
    a, b = _site(program, one), _site(program, other)
    x, y = a.op.operands.get("coords"), b.op.operands.get("coords")
    loops = [loop for loop in a.loops if loop.kind == "tiles"]
    if not isinstance(x, tuple) or not isinstance(y, tuple) or len(x) != len(y) or len(loops) != 1 or loops != [loop for loop in b.loops if loop.kind == "tiles"]:
        return ()
    names = program.schedulers[str(loops[0].scheduler)].names
    pairs = [(_sequence(program, a, e), _sequence(program, b, at)) for e, at in zip(x, y, strict=True)]
    return tuple([(len(names), names.index(mine)) for mine, theirs in pairs if mine == theirs and mine in names])


def _sequence(program: Program, s: Site, e: Expr) -> str:
    """The field of the tile that numbers the sequence which a coordinate counts from, empty where there is none."""
    _, terms = linear(resolver_of(program, s.role.name)(e)) if not isinstance(e.type, FragT) else (0, dict[str, int]())
    read = [t for t in terms if "[" in t]
    table, _, place = read[0].partition("[") if len(read) == 1 and terms[read[0]] == 1 else ("", "", "")
    return place.removeprefix("tile.").removesuffix("]") if table in prefix_tensors(program) and place.startswith("tile.") and all(n > 0 for n in terms.values()) else ""


def _between(program: Program, s: Site, e: Expr, axis: int) -> tuple[str, ...] | None:
    """The tables of which a tile's share lies between the sums of two neighbouring elements, as the number of the tile counts them."""
    tiles = [program.schedulers[str(x.scheduler)] for x in s.loops if x.kind == "tiles"]
    if isinstance(e.type, FragT) or len(tiles) != 1 or len(tiles[0].names) != 1:
        return None
    (name,) = tiles[0].names
    _, (low, first), (high, last) = _stretch(program, s, e, axis)
    here, there = f"[tile.{name}]", f"[(tile.{name}+1)]"
    if low < 0 or high >= 0 or any(n and (n != 1 or not t.endswith((here, there))) for form in (first, last) for t, n in form.items()):
        return None
    tables = sorted(t.partition("[")[0] for t, n in first.items() if n)
    known = {d.tensor for d in program.decls if isinstance(d, AssumeValues) and d.sorted}
    return tuple(tables) if tables and known.issuperset(tables) and tables == sorted(t.partition("[")[0] for t, n in last.items() if n) else None


def _site(program: Program, op: int) -> Site:
    return next(s for s in sites(program).ops if s.op.id == op)


def _form(program: Program, role: str, e: Expr) -> _Form | None:
    """A coordinate as a sum of numbers of its elements and of scalars; None where it is none."""
    if not isinstance(e.type, FragT):
        constant, terms = linear(resolver_of(program, role)(e))
        return constant, dict(terms)
    e = defined(program, role, e)
    if e.op == "iota":
        start = _form(program, role, e.args[1]) if len(e.args) > 1 else (0, {})
        return None if start is None else (start[0], {**start[1], "#": 1})
    if e.op == "cast":
        return _form(program, role, e.args[0])
    if e.op in ("add", "sub"):
        left, right = (_form(program, role, a) for a in e.args)
        return None if left is None or right is None else _sum(left, right, 1 if e.op == "add" else -1)
    if e.op in ("mul", "shl"):
        for x, by in (e.args, e.args[::-1])[: 1 if e.op == "shl" else 2]:
            n = by.attrs.get("value") if by.op == "const" else None
            if isinstance(n, int) and (form := _form(program, role, x)) is not None:
                return _sum((0, {}), form, n if e.op == "mul" else 1 << n)
    return None


def _sum(left: _Form, right: _Form, times: int) -> _Form:
    terms = dict(left[1])
    for name, n in right[1].items():
        terms[name] = terms.get(name, 0) + times * n
    return left[0] + times * right[0], terms


__all__ = ["by_member", "in_front", "never_meet", "one_of_two", "own_sequences", "shares"]
