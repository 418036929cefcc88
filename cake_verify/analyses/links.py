"""Chains of tiles that follow each other by flags: which tile waits for which, what it reads then, and which tiles its conditions leave out.

The word that a tile waits for and the word that it raises itself differ by a constant. Divided by the step of one field of the tile that is
the distance, along that field, of the tile that is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.structure import OPPOSITE, conjuncts, stated
from cake_ir.program import Expr, For, If, Program
from cake_ir.record import record
from cake_verify.analyses.fixed_scalars import in_place
from cake_verify.analyses.grid_access import touched
from cake_verify.analyses.grid_cells import FLAG, READ
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import linear, resolver_of

Linear = tuple[int, dict[str, int]]

_FIELD = "tile."
_ORDERED = frozenset({"lt", "le", "gt", "ge"})


@record()
class Link:
    """A wait for another tile's word: the word less the own one is `distance`."""

    spin: Site
    signal: Site
    word: Linear
    distance: int


@record()
class LeftOut:
    """Tiles that a condition around a wait leaves out although the tile that they would wait for exists: along `field`, `first` .. `last`
    (as offsets from the end of the axis where `from_end`)."""

    link: Link
    guard: If
    field: str
    shift: int
    threshold: str
    first: int
    last: int
    from_end: bool


def links(program: Program) -> Iterator[Link]:
    """The waits whose word is that of one signal but for a constant."""
    waits = [s for s in sites(program).ops if s.op.name == "spin"]
    for spin in waits:
        signals = [s for s in sites(program).ops if s.op.name == "signal" and s.op.attrs["flags"] == spin.op.attrs["flags"]]
        if len(signals) != 1:
            continue
        mine, theirs = _word(program, spin), _word(program, signals[0])
        if mine[1] == theirs[1] and mine[0] != theirs[0] and any(t.startswith(_FIELD) for t in mine[1]):
            yield Link(spin, signals[0], mine, mine[0] - theirs[0])


def handed_over(program: Program) -> Iterator[tuple[Site, Site, Site]]:
    """A wait for one of many words, each raised by the unit or tile of its number, the signal and a load at that word of what nobody writes."""
    for spin in sites(program).ops:
        if spin.op.name != "spin":
            continue
        signals = [s for s in sites(program).ops if s.op.name == "signal" and s.op.attrs["flags"] == spin.op.attrs["flags"]]
        mine = _word(program, spin)
        if len(signals) == 1 and mine[1] and mine[1] != _word(program, signals[0])[1] and (found := unwritten(program, spin, mine, _running(program, spin, signals[0]))) is not None:
            yield spin, signals[0], found


def _running(program: Program, spin: Site, signal: Site) -> tuple[Linear, ...]:
    """The numbers of the tiles that are waited for, as sums."""
    return tuple((0, {f"?{loop.var}": 1}) for loop, _ in numbered(program, spin, signal))


def numbered(program: Program, spin: Site, signal: Site) -> tuple[tuple[For, str], ...]:
    """The loop whose variable stands in the word of a wait where a field of the tile stands in the word of the signal, with that field: it counts the tiles that are waited for."""
    mine, theirs = (resolver_of(program, s.role.name)(e) for s in (spin, signal) if isinstance(e := s.op.operands["i"], Expr))
    word = linear(theirs)
    fields = {str(n.attrs["name"]): n for n in theirs.parts() if n.op == "field"}
    moved = {str(n.attrs["name"]) for n in mine.parts() if n.op == "var"}
    loops = [loop for loop in spin.loops if loop.kind != "tiles" and loop.var in moved]
    return tuple((loop, name) for loop in loops for name, f in fields.items() if linear(in_place(mine, loop.var, f)) == word)


def _word(program: Program, s: Site) -> Linear:
    return _linear(program, s, s.op.operands["i"])


def _linear(program: Program, s: Site, e: object) -> Linear:
    assert isinstance(e, Expr)
    return linear(resolver_of(program, s.role.name)(e))


# ------------------------------------------------------------------ what is read behind a wait


def unwritten(program: Program, spin: Site, word: Linear, places: tuple[Linear, ...] = ()) -> Site | None:
    """A load behind a wait for `word`, at the place of the tile that is waited for (the word, or one of `places`), of a tensor that the launch does not
    write; None where something that it does write is read there too."""
    kinds: dict[str, set[str]] = {}
    accesses = touched(program)
    for tensor, kind, _ in accesses.values():
        kinds.setdefault(tensor, set()).add(kind)
    behind = [s for s in sites(program).of_role(spin.role.name) if s.order > spin.order and s.path[: len(spin.path)] == spin.path]
    suspect: Site | None = None
    for s in behind:
        found = accesses.get(s.op)
        if found is None or found[1] == FLAG:
            continue
        if kinds[found[0]] != {READ}:
            return None
        param = program.tensors[found[0]]
        if suspect is None and not (param.const or param.zeroed or param.inout) and any(_linear(program, s, e) in (word, *places) for e in _coordinates(s)):
            suspect = s
    return suspect


def _coordinates(s: Site) -> list[Expr]:
    coords = s.op.operands.get("coords")
    found = coords if isinstance(coords, tuple) else (s.op.operands.get("i"),)
    return [e for e in found if isinstance(e, Expr)]


# ------------------------------------------------------------------ tiles that a condition leaves out


def left_out(program: Program, link: Link) -> LeftOut | None:
    """Tiles that do not wait although the tile before them on their axis raises its word."""
    guards = link.spin.branches()
    if len(guards) != 1 or any(isinstance(p, If) for p in link.signal.path):
        return None
    guard, arm = guards[0]
    conds = conjuncts(resolver_of(program, link.spin.role.name)(guard.cond))
    if len(conds) != 1:
        return None
    op = conds[0].op if arm else OPPOSITE.get(conds[0].op, "")
    if op not in _ORDERED:
        return None
    constant, live = linear(Expr("sub", conds[0].args))
    fields = [t for t in live if t.startswith(_FIELD)]
    if len(fields) != 1 or abs(live[fields[0]]) != 1:
        return None
    field = fields[0]
    step = link.word[1].get(field, 0)
    if not step or link.distance % step:
        return None
    shift = link.distance // step
    sign = live.pop(field)
    if op in ("lt", "le"):  # as a lower bound: sign * field + constant + rest > or >= 0
        sign, constant, live = -sign, -constant, {t: -n for t, n in live.items()}
    if op in ("lt", "gt"):
        constant -= 1
    if sign > 0 and shift < 0 and not live:  # field >= -constant, where field >= -shift has a partner
        if -constant > -shift:
            return LeftOut(link, guard, field[len(_FIELD) :], shift, str(-shift), -shift, -constant - 1, False)
    elif sign < 0 and shift > 0:  # field <= constant + rest, where field <= count - 1 - shift has a partner
        count = tiles_along(program, link.spin, field[len(_FIELD) :])
        if count is not None and count[1] == live and constant < count[0] - 1 - shift:
            return LeftOut(link, guard, field[len(_FIELD) :], shift, "", constant + 1 - count[0], -1 - shift, True)
    return None


def tiles_along(program: Program, s: Site, field: str) -> Linear | None:
    """How many tiles an axis has, as a sum."""
    for loop in s.loops:
        d = program.schedulers.get(str(loop.scheduler)) if loop.kind == "tiles" else None
        if d is not None and d.kind != "grouped" and field in d.names:
            return _linear(program, s, d.tiles[d.names.index(field)])
    return None


def raised(program: Program, signal: Site, field: str) -> Linear | None:
    """How many tiles along a field raise their words, from the first on: as many as the axis has, or as the one condition around the signal lets through."""
    guards = signal.branches()
    if not guards:
        return tiles_along(program, signal, field)
    conds = stated(resolver_of(program, signal.role.name)(guards[0][0].cond))
    if len(guards) != 1 or len(conds) != 1:
        return None
    op = conds[0].op if guards[0][1] else OPPOSITE.get(conds[0].op, "")
    constant, live = linear(Expr("sub", conds[0].args))
    sign = live.pop(_FIELD + field, 0)
    if op in ("gt", "ge"):  # as an upper bound: sign * field + constant + rest < or <= 0
        sign, constant, live = -sign, -constant, {t: -n for t, n in live.items()}
    if op not in _ORDERED or sign != 1 or any(t.startswith(_FIELD) for t in live):
        return None
    return -constant + (op in ("le", "ge")), {t: -n for t, n in live.items()}


__all__ = ["LeftOut", "Link", "handed_over", "left_out", "links", "numbered", "raised", "tiles_along", "unwritten"]
