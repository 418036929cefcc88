"""Positions in masks of tiles that a product or a load made: what moves the tile, and whether the mask knows of it.

The rows and columns of a tile come from loads whose coordinates step by tiles or rounds. A comparison of positions with each other, or with a
length, is about the tensor's elements only if it follows every such step: in its positions, in what they are compared with, or because rows
and columns move together.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import holding
from cake_ir.derive.structure import conjuncts, nodes
from cake_ir.program import Expr, For, If, Program
from cake_ir.record import record
from cake_ir.types import FragT
from cake_verify.analyses.runs import compared, defined, run_of
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.tile_origins import Origin, origins
from cake_verify.analyses.trips import canonical, linear, resolver_of

_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


@record(eq=False)
class Still:
    """Positions along an axis of a tile that stay where they are while `origin` moves it with `moves`, and the comparison that takes them."""

    positions: Expr
    at: Expr
    origin: Origin
    moves: str


def still(program: Program) -> Iterator[tuple[Site, Still]]:
    """The choices by positions that do not follow their tile."""
    of_op, choosing = nodes(program), holding(program).get("where", frozenset())
    for s in sites(program).of("compute"):
        for n in of_op[s.op.id] if s.op.id in choosing else ():
            if n.op == "where":
                found = next((x for part in conjuncts(defined(program, s.role.name, n.args[0])) if (x := _compared(program, s, part, n)) is not None), None)
                if found is not None:
                    yield s, found
                    break


def _compared(program: Program, s: Site, part: Expr, choice: Expr) -> Still | None:
    role = s.role.name
    n = compared(program, role, part)
    if n.op not in _COMPARED:
        return None
    sides = [(run_of(program, role, a), defined(program, role, a)) for a in n.args]
    if all(run is None for run, _ in sides):
        return None
    tile = next((a for a in choice.args[1:] if isinstance(a.type, FragT) and a.type.form not in ("rowvec", "colvec") and a.op != "const"), None)
    if tile is None:
        return None
    resolve = resolver_of(program, role)
    for (run, e), (against, other) in (sides, sides[::-1]):
        iota = _iota(program, role, e) if run is not None else None
        axis = _axis(iota)
        if run is None or iota is None or axis is None:
            continue
        across = against is not None
        if not across and isinstance(other.type, FragT):
            return None
        bound = against[0] if against is not None else resolve(other)
        found = origins(program, role, tile, axis)
        crossing = origins(program, role, tile, 1 - axis) if across else ()
        if not found or (across and (not crossing or _axis(_iota(program, role, other)) != 1 - axis)):
            continue
        moves = _unfollowed(program, s, found, crossing, run[0], bound)
        if moves is not None and (across or _elements(program, s, bound, moves[0])):
            return Still(iota, n, *moves)
    return None


def _axis(iota: Expr | None) -> int | None:
    """The axis that positions run along."""
    if iota is None or not isinstance(iota.type, FragT):
        return None
    return 0 if iota.type.form == "rowvec" else 1 if iota.type.form == "colvec" else None


def _iota(program: Program, role: str, e: Expr) -> Expr | None:
    return next((n for n in _open(program, role, e, 6) if n.op == "iota"), None)


def _open(program: Program, role: str, e: Expr, depth: int) -> Iterator[Expr]:
    for n in defined(program, role, e).parts():
        yield n
        if n.op == "var" and depth and isinstance(n.type, FragT):
            d = defined(program, role, n)
            if d is not n:
                yield from _open(program, role, d, depth - 1)


def _unfollowed(program: Program, s: Site, found: tuple[Origin, ...], crossing: tuple[Origin, ...], base: Expr, bound: Expr) -> tuple[Origin, str] | None:
    """What moves a tile while neither its positions nor what they are compared with depend on it."""
    known = {x.var for x in s.loops}
    read = _read(base) | _read(bound)
    if not read <= known | {f"{x.var}.{name}" for x in s.loops if x.kind == "tiles" for name in program.schedulers[str(x.scheduler)].fields}:
        return None  # a name that is bound more than once: anything may move it
    if any(n.op in ("mod", "cta_rank", "cta_id") for e in (base, bound) for n in e.parts()):
        return None
    rounds = [x for x in s.loops if x.kind != "tiles"]
    if not _of_this_axis(program, s, found, _read(base), rounds):
        return None
    for k, x in enumerate(rounds):
        there = [y for o in found if (y := _partner(program, s, o, k, x)) is not None]
        with_it = [o for o in found if _follows(program, s, o, k, x)]
        if with_it and len(with_it) == len(there) and x.var not in read and not any(_follows(program, s, o, k, x) for o in crossing) and _several(program, s.role.name, x) and not any(isinstance(p, If) for p in s.path[s.path.index(x) :]):
            return with_it[0], x.var
    for t in (x for x in s.loops if x.kind == "tiles"):
        d = program.schedulers[str(t.scheduler)]
        for name in d.names:
            as_read = {f"{t.var}.{name}"} | ({f"{t.var}.row0", f"{t.var}.rows"} if d.kind == "grouped" and name == "m" else set())  # where its rows start, and how many are left from there on
            if crossing and _tied(program, s, rounds, name):
                continue
            if read.isdisjoint(as_read) and all([_steps(program, o, t, name) for o in found]) and not any(_touches(o.coordinate, as_read, bound) for o in crossing):
                return found[0], f"{t.var}.{name}"
    return None


def _tied(program: Program, s: Site, rounds: list[For], name: str) -> bool:
    """Whether a branch holds the round at the tile's own number (`if j == t.m:`): rows and columns start at the same place there."""
    resolve = resolver_of(program, s.role.name)
    for branch, arm in s.branches():
        for c in conjuncts(resolve(branch.cond)) if arm else ():
            terms = linear(Expr("sub", c.args))[1] if c.op in _COMPARED else {}
            if len(terms) == 2 and sum(terms.values()) == 0 and f"tile.{name}" in terms and any(f"?{x.var}" in terms for x in rounds):
                return True
    return False


def _of_this_axis(program: Program, s: Site, found: tuple[Origin, ...], base: set[str], rounds: list[For]) -> bool:
    """Whether all that moves the positions moves the tile: positions that follow something else are those of another axis."""
    fields = {str(n.attrs["name"]) for o in found for n in o.coordinate.parts() if n.op == "field"}
    if any("." in name and name.partition(".")[2] not in fields and not ("row0" in fields and name.endswith(".m")) for name in base):
        return False
    return all(x.var not in base or any(_follows(program, s, o, k, x) for o in found) for k, x in enumerate(rounds))


def _read(e: Expr) -> set[str]:
    """Loop variables and fields that an expression depends on."""
    fields = {id(n.args[0]): f"{n.args[0].attrs.get('name')}.{n.attrs['name']}" for n in e.parts() if n.op == "field"}
    return set(fields.values()) | {str(n.attrs["name"]) for n in e.parts() if n.op == "var" and id(n) not in fields}


def _follows(program: Program, s: Site, o: Origin, k: int, x: For) -> bool:
    """Whether a load's coordinate changes with the round of its own role that is the `k`-th loop around the comparison."""
    y = _partner(program, s, o, k, x)
    return y is not None and any(n.op == "var" and n.attrs["name"] == y.var for n in o.coordinate.parts())


def _partner(program: Program, s: Site, o: Origin, k: int, x: For) -> For | None:
    """The loop around a load that goes round with the `k`-th one around the comparison."""
    rounds = [y for y in o.load.loops if y.kind != "tiles"]
    y = rounds[k] if k < len(rounds) else None
    return y if y is x or (y is not None and o.load.role is not s.role and _same(program, s.role.name, x, o.load.role.name, y)) else None


def _same(program: Program, one: str, x: For, other: str, y: For) -> bool:
    """Whether loops of two roles have the same bounds as far as their texts tell."""
    if x.lo is None or x.hi is None or y.lo is None or y.hi is None:
        return False
    a, b = resolver_of(program, one), resolver_of(program, other)
    return canonical(a(x.lo)) == canonical(b(y.lo)) and canonical(a(x.hi)) == canonical(b(y.hi))


def _several(program: Program, role: str, x: For) -> bool:
    hi = resolver_of(program, role)(x.hi) if x.hi is not None else None
    return hi is not None and not (hi.op == "const" and hi.attrs["value"] == 1)


def _steps(program: Program, o: Origin, t: For, name: str) -> bool:
    """Whether a field of the tile moves a load by whole pieces, and alone."""
    d = program.schedulers[str(t.scheduler)]
    fields = [n.attrs["name"] for n in o.coordinate.parts() if n.op == "field"]
    grouped = d.kind == "grouped" and name == "m" and name not in fields
    if o.size < 2 or ("row0" if grouped else name) not in fields or not any(x.kind == "tiles" and x.scheduler == t.scheduler for x in o.load.loops):
        return False
    terms = linear(o.coordinate)[1]
    step = terms.get(f"tile.{name}", 0)
    return terms.get("tile.row0", 0) == 1 and d.block == o.size if grouped else step != 0 and step % o.size == 0


def _touches(e: Expr, fields: set[str], bound: Expr) -> bool:
    """Whether a coordinate depends on fields of the tile: what it reads from a table counts where the positions do not read that too."""
    names = {f.partition(".")[2] for f in fields}
    tables = {n.attrs["tensor"] for n in bound.parts() if n.op == "ld"}
    waiting = [e]
    while waiting:
        n = waiting.pop()
        if n.op == "field" and n.attrs["name"] in names:
            return True
        if n.op != "ld" or n.attrs["tensor"] not in tables:
            waiting += n.args
    return False


def _elements(program: Program, s: Site, bound: Expr, o: Origin) -> bool:
    """Whether a number counts elements of the axis: its extent, what memory holds, a place of the tile, or what ends a loop around."""
    tensor = program.tensors.get(str(o.load.op.attrs.get("tensor")))
    extent = tensor.extents[len(tensor.extents) - 1 - o.axis] if tensor is not None and o.axis < len(tensor.extents) else None
    resolve = resolver_of(program, s.role.name)
    ends = {n.attrs["name"] for x in s.loops if x.kind != "tiles" and x.hi is not None for n in resolve(x.hi).parts() if n.op == "param"}
    return any(n.op in ("ld", "field") or (n.op == "param" and (n.attrs["name"] == extent or n.attrs["name"] in ends)) for n in bound.parts())


__all__ = ["Still", "still"]
