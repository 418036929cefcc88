"""What the settings of a program have to cover: tile boundaries, a full window, one iteration, none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cake_ir.program import Expr, For, statements
from cake_ir.record import record
from cake_verify.analyses.read_guards import neighbours, reads
from cake_verify.analyses.trips import arguments_of, canonical, conditions, linear, loops

if TYPE_CHECKING:
    from cake_verify.analyses.settings import Settings


MOST_LAG = 256
"""Iterations up to which a guard's constant is followed; what changes later is not decided."""
_LONGEST = 2 * MOST_LAG
"""Iterations past which one length is like another."""

UNEVEN = 10.0
"""What an argument that is not a whole number of its blocks weighs against a trip too few or too many: more than trips, lest the search pick
arguments that hide a difference between two roles' counts."""


@record()
class Goal:
    """`tiles` tiles in one CTA, `trips` iterations of every run-time loop.

    `mixed` varies the lengths read from memory; `over` asks for arguments this little above (below) a whole number of blocks; `apart` gives
    every loop iterations of its own (0: whatever comes); `spare`: it shows nothing that the others do not, where they come to a whole window.
    """

    tiles: int
    trips: int
    mixed: bool = False
    over: int = 0
    apart: tuple[int, ...] = ()
    spare: bool = False


def goals_of(search: Settings) -> list[Goal]:
    """The goals of one program, most telling first."""
    tiled = search.scheduler is not None and search.scheduler.kind != "grid"
    if not search.loops:
        unlike = [Goal(4 if tiled else 1, 0, mixed=True)] if any(neighbours(c) for c in search.guard_conditions) else []
        return [Goal(search.window if tiled else 1, 0), Goal(1, 0), *unlike] if tiled else [Goal(1, 0), *unlike]
    goals = [Goal(2 if tiled else 1, search.window), Goal(search.stages + 2 if tiled else 1, 1), Goal(3 if tiled else 1, 0)]
    if tiled:
        goals.append(Goal(3, 2))
    if search.blocks:
        spare = _alike(search)
        goals += [Goal(1, 2, over=1, spare=spare), Goal(1, max(3, search.stages + 1), over=-1, spare=spare)]
    if search.read and tiled:
        goals.append(Goal(4, 2, mixed=True))
    if any(reads(c) for c in search.guard_conditions):  # rounds that a branch on what is read leaves out between others
        goals.append(Goal(2 if tiled else 1, search.window, mixed=True))
    return goals + [Goal(_KINDS if tiled else 1, 2, apart=lengths) for lengths in _apart(search)]


_KINDS = 5
"""Tiles of a walk in which tiles of two kinds, that take different arms, both come."""


def _alike(search: Settings) -> bool:
    """Whether arguments that are no whole numbers of blocks give nothing that others do not: lengths of loops are of the same arguments only where
    they are the same but for a number, branches compare nothing but counters, tiles and these lengths, and no copy takes a number of rows."""
    if search.unknown or any(op.operands.get("rows") is not None for op in search.program.ops):
        return False
    by = {frozenset(linear(e)[1].items()): e for each in search.lengths for e in each}  # what a number is added to stays as many rounds apart
    names = [arguments_of([e]) for e in by.values()]
    if None in names or sum([len(n or ()) for n in names]) > len(frozenset().union(*[n or () for n in names])):
        return False
    every = loops(search.program)
    bounds = {canonical(e) for loop in every for e in (loop.lo, loop.hi)} | {f"?{loop.stmt.var}" for loop in every}
    return all(_counts(c, bounds) for _, _, c in conditions(search.program))


def _counts(e: Expr, bounds: set[str]) -> bool:
    """Whether a condition compares counters, tiles, numbers and bounds of loops."""
    if e.op in ("and", "or", "not"):
        return all([_counts(a, bounds) for a in e.args])
    if not any(n.op in _OF_ARGUMENTS for n in e.parts()):
        return True
    if e.op not in ("lt", "le", "gt", "ge", "eq", "ne"):
        return False
    return all([t in bounds or t.startswith("tile.") for t in linear(Expr("sub", e.args))[1]])


_OF_ARGUMENTS = frozenset({"param", "field", "ld", "extent"})


def _apart(search: Settings) -> list[tuple[int, ...]]:
    """Iterations for every loop, where branches choose between loops of different lengths: as long as these agree, a role that takes another arm than
    its partner goes round as often."""
    inside = {id(x) for _, s, _ in conditions(search.program) for x in statements((*s.then, *s.orelse)) if isinstance(x, For)}
    lengths = [f"{canonical(x.lo)} {canonical(x.hi)}" if id(x.stmt) in inside else "" for x in search.loops]
    kinds = [*dict.fromkeys(n for n in lengths if n)]
    if len(kinds) < 2:
        return []
    return [tuple([0 if not n else 1 + 2 * ((kinds.index(n) + first) % 2) for n in lengths]) for first in (0, 1)]


def off_trips(goal: Goal, counts: tuple[int, ...], far: bool) -> float:
    """How far the trips of all loops are from a goal; `far`: where arguments farther away are tried, more is nearly as good."""
    d, trips = 0.0, goal.trips
    if goal.apart:
        return float(sum([abs(n - wanted) for n, wanted in zip(counts, goal.apart, strict=True) if wanted]))
    for n in counts:
        over = (n if n < _LONGEST else _LONGEST) - trips
        off = -over if over <= 0 else 0.02 * over if far else over
        if n < trips > 3:
            off += 0.5 * (trips - (n if n > 3 else 3))  # a little more shows what a little less may not
        d += off
    return d


def uneven(block: tuple[int, int], value: int, over: int) -> float:
    """A penalty for an argument that is not a whole number of its blocks, or just above (below) one by the unit beside."""
    size, unit = block
    return UNEVEN if value % size != unit * over % size else 0.0


def off_tiles(goal: Goal, total: int, d: float) -> float:
    """How far a profile is from a goal, whose trips are off by `d`."""
    beyond = total - goal.tiles
    if beyond < 0:
        d -= 2 * beyond
        beyond = -beyond
    return d + 0.001 * (beyond if beyond < 999 else 999)
