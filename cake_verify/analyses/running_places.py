"""Places that a running count hands out: what passes a mask goes behind what has passed before it, `base + seen + lm.scan(m, "add") - 1`, and what is behind the count afterwards was never taken.

Two stores whose places memory decides are apart where the one takes places below a count and the other, behind the loop that counts, places from the count on; and
in different tiles where both stay between an offset that the tile's number reads and the next one.
"""

from __future__ import annotations

from cake_ir.derive.structure import conjuncts
from cake_ir.fact import fact
from cake_ir.program import AssumeValues, Expr, Program
from cake_ir.record import record
from cake_ir.types import FragT
from cake_verify.analyses.runs import compared, defined
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import canonical, resolver_of


@record(eq=False)
class _Place:
    """`base + count + rank + iota + more`: which parts there are; `base` is the element of a table that the tile's number reads, `ranked` what the rank is of."""

    site: Site
    base: Expr
    count: str
    ranked: Expr | None
    iota: bool
    more: int


def apart(program: Program, one: int, other: int, same_tile: bool) -> bool:
    """Whether two stores of one tensor never write one element, in one tile or in two."""
    places = _places(program)
    a, b = places.get(one), places.get(other)
    if a is None or b is None or a.site.role is not b.site.role or canonical(a.base) != canonical(b.base):
        return False
    if not same_tile:
        return _stays(program, a) and _stays(program, b)
    return _below(a, b) or _below(b, a)


@fact
def _places(program: Program) -> dict[int, _Place]:
    return {s.op.id: p for s in sites(program).of("store") if (p := _place(program, s)) is not None}


def _below(a: _Place, b: _Place) -> bool:
    """Whether the one takes places below what the count is behind its loop, and the other places from the count on, behind that loop."""
    if a.ranked is None or b.ranked is not None or not a.count or a.count != b.count or b.more < 0:
        return False
    return b.site.order > a.site.order and len(b.site.loops) < len(a.site.loops) and a.site.loops[: len(b.site.loops)] == b.site.loops


def _place(program: Program, s: Site) -> _Place | None:
    """The parts of a store's one coordinate, where they are all there is in it and the count is one of what the rank is of."""
    coords, mask, role = s.op.operands.get("coords"), s.op.operands.get("mask"), s.role.name
    if not isinstance(coords, tuple) or len(coords) != 1 or not isinstance(coords[0], Expr) or not isinstance(coords[0].type, FragT) or not isinstance(mask, Expr):
        return None
    resolve = resolver_of(program, role)
    base: Expr | None = None
    count, ranked, iota, more = "", None, False, 0
    for sign, part in _terms(program, role, coords[0], 1):
        if part.op == "const" and isinstance(part.attrs["value"], int):
            more += sign * part.attrs["value"]
        elif sign < 0:
            return None
        elif part.op == "scan" and part.attrs.get("op") == "add" and ranked is None:
            ranked = part.args[0]
        elif part.op == "iota" and not iota and all(a.op == "const" and isinstance(v := a.attrs["value"], int) and v >= 0 for a in part.args[1:]):
            iota = True
        elif part.op == "var" and isinstance(part.type, FragT) and not count:
            count = str(part.attrs["name"])
        elif not isinstance(part.type, FragT) and base is None:
            base = resolve(part)
        else:
            return None
    if s.role.members > 1:  # each counts by itself
        return None
    counted = _counted(program, s, count) if count else None
    if base is None or base.op != "ld" or (count and counted is None):
        return None
    if ranked is not None and (more != -1 or iota or counted is None or canonical(ranked) != canonical(counted) or not _picks(program, role, ranked, mask)):
        return None
    return _Place(s, base, count, ranked, iota, more)


def _terms(program: Program, role: str, e: Expr, sign: int) -> list[tuple[int, Expr]]:
    """A sum as its terms, names of fragments that are bound once put out of the way."""
    e = defined(program, role, e) if isinstance(e.type, FragT) else e
    if e.op in ("add", "sub") and isinstance(e.type, FragT):
        return [*_terms(program, role, e.args[0], sign), *_terms(program, role, e.args[1], sign if e.op == "add" else -sign)]
    return [(sign, e)]


def _counted(program: Program, s: Site, name: str) -> Expr | None:
    """What a count that starts at a number that is not negative adds up in a loop, behind a store in it: the fragment of ones and zeros, each round's own."""
    bound = sites(program).results.get((s.role.name, name), ())
    if len(bound) != 2 or bound[0].loops != bound[1].loops[: len(bound[0].loops)] or len(bound[1].loops) != len(bound[0].loops) + 1 or bound[1].path[: len(bound[0].path)] != bound[0].path:
        return None
    if bound[1].loops[-1] in s.loops and (s.path[: len(bound[1].path)] != bound[1].path or s.arms[: len(bound[1].arms)] != bound[1].arms):  # counted where it is stored
        return None
    if s.order > bound[1].order and bound[1].loops[-1] in s.loops:
        return None
    start, step = (b.op.operands.get("value") for b in bound)
    if not isinstance(start, Expr) or start.op != "const" or not isinstance(n := start.attrs["value"], int) or n < 0 or not isinstance(step, Expr) or step.op != "add":
        return None
    for own, added in (step.args, step.args[::-1]):
        added = defined(program, s.role.name, added)
        if own.op == "var" and own.attrs["name"] == name and (added.op == "sum" or (added.op == "reduce" and added.attrs.get("op") == "add")):
            return added.args[0]
    return None


def _picks(program: Program, role: str, ones: Expr, mask: Expr) -> bool:
    """Whether a mask lets through only what is one in a fragment of ones and zeros."""
    e = defined(program, role, ones)
    values = [a.attrs.get("value") for a in e.args[1:]] if e.op == "where" else []
    if values not in ([1, 0], [0, 1]):
        return False
    one = e.args[0] if values[0] else Expr("not", e.args[:1], {}, e.args[0].type)
    wanted = canonical(compared(program, role, one))
    return any(canonical(compared(program, role, c)) == wanted for c in conjuncts(defined(program, role, mask)))


def _stays(program: Program, p: _Place) -> bool:
    """Whether a place lies between an element of a table of offsets that never fall, read by the number of the tile alone, and the next element."""
    index, table, role = p.base.args[0], str(p.base.attrs["tensor"]), p.site.role.name
    tiles = [program.schedulers[str(x.scheduler)] for x in p.site.loops if x.kind == "tiles"]
    if len(tiles) != 1 or len(tiles[0].names) != 1 or index.op != "field" or not any(isinstance(d, AssumeValues) and d.tensor == table and d.sorted for d in program.decls):
        return False
    coords, mask, resolve = p.site.op.operands["coords"], p.site.op.operands["mask"], resolver_of(program, role)
    at = canonical(defined(program, role, coords[0]))  # type: ignore[index,arg-type]  # see `_place`
    for c in conjuncts(defined(program, role, mask)):  # type: ignore[arg-type]  # as above
        m = compared(program, role, c)
        if m.op == "lt" and isinstance(m.args[0].type, FragT) and canonical(defined(program, role, m.args[0])) == at:
            end = resolve(m.args[1])
            if end.op == "ld" and end.attrs["tensor"] == table and canonical(end.args[0]) == canonical(Expr("add", (index, Expr("const", (), {"value": 1})))):
                return p.more >= 0 or p.ranked is not None
    return False


__all__ = ["apart"]
