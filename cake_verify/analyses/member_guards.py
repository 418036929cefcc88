"""Guards that runs have to meet both ways: those that tell the members of a role apart, and those that tell tiles apart.

`head = t.h * WARPS + work.index` with `if head < HEADS:` leaves out members of the last tile. A run that only walks such a tile, or whose
arguments are so few that one member works alone, shows nothing of what members do to each other. `if t.c < 4:` has two kinds of tiles, and a
run that walks one kind shows nothing of the other, nor of what the two do to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from cake_ir.fact import fact
from cake_ir.program import Expr, Program
from cake_verify.analyses import trips
from cake_verify.analyses.count_text import compiled, texts
from cake_verify.analyses.read_guards import of_member, reads
from cake_verify.analyses.read_numbers import outside_reads
from cake_verify.analyses.tiling import reader, tile_source
from cake_verify.analyses.trips import NO_VALUE

if TYPE_CHECKING:
    from cake_verify.analyses.setting import Setting
    from cake_verify.analyses.settings import Settings

TILES = 64
"""Tiles of a walk that are looked at."""
SURE = 3
"""Tiles along an axis that the runs surely have where arguments can give them."""
CLUSTERS = 16
"""Clusters of a setting that are walked instead, where the one it names leaves members out."""

Test = Callable[[dict[str, Any]], tuple[Any, ...]]


def together(search: Settings, found: list[Setting]) -> list[Setting]:
    """Settings to be run too, with the arguments of one of those that there are: for each guard on members of which no walk lets all members pass,
    another cluster, and for each on tiles that no walk meets both ways, one that takes all tiles."""
    out: list[Setting] = []
    for test in _tests(search.program):
        for most in (0, *({deep} if (deep := _deepest(search, found)) else ())):  # what stands behind numbers that were read, too
            if any(_passed(search, x, test, most) for x in (*found, *out)):
                continue
            others = (replace(x, cluster=c, telling=False) for x in found for c in range(min(x.clusters, CLUSTERS)) if c != x.cluster)
            more = next((x for x in others if _passed(search, x, test, most)), None)
            if more is not None:
                out.append(more)
    for _, test in tile_guards(search.program):
        if any(met_both_ways(search.program, x, search.prefix, test) for x in (*found, *out)):
            continue
        alone = (replace(x, clusters=1, cluster=0, tiles=x.tiles * x.clusters, telling=False) for x in found if x.clusters > 1 and x.tiles * x.clusters <= TILES)
        more = next((x for x in alone if search.scheduler is not None and search.scheduler.kind == "static" and met_both_ways(search.program, x, search.prefix, test)), None)
        if more is not None:
            out.append(more)
    return out + _in_a_row(search, [*found, *out])


def _in_a_row(search: Settings, found: list[Setting]) -> list[Setting]:
    """Settings in which one block takes two tiles of a kind in a row, for each guard on tiles and side of it of which no walk does: the last use of
    something in a tile then meets the first in the next with nothing of the other kind in between."""
    s = search.scheduler
    out: list[Setting] = []
    if s is None or s.kind != "static" or search.counts is None:
        return out
    for test in _kinds(search.program):
        for side in (True, False):
            if any(_successive(search, x, test, side) for x in (*found, *out)):
                continue
            more = next((x for x in _strided(search, found) if _successive(search, x, test, side)), None)
            if more is not None:
                out.append(more)
    return out


@fact
def _kinds(program: Program) -> tuple[Test, ...]:
    """What parts tiles into two kinds: conditions on their fields alone, compared with a number."""
    out = []
    for _, c, names in _looked_at(program):
        if "field" in names and not names & {"var", "ld", "cta_rank", "cta_id", "role_index", "param"}:
            (text,) = texts(program, [[c]])
            if text is not None:
                out.append(compiled([f"bool({text[0]})"])[0])
    return tuple(out)


def _strided(search: Settings, found: list[Setting]) -> Iterator[Setting]:
    """The settings with as many blocks as there are tiles along the first axis: a block comes back to the same number there."""
    assert search.counts is not None
    for x in found:
        counts = search.counts({**search.ones, **x.args, "ld": reader(x.lengths, search.prefix)})
        total = prod(counts)
        if 1 < counts[0] <= CLUSTERS and 2 * counts[0] <= total <= TILES:
            yield from (replace(x, clusters=counts[0], cluster=c, tiles=total // counts[0], telling=False) for c in range(counts[0]))


def _successive(search: Settings, setting: Setting, test: Test, side: bool) -> bool:
    try:
        sides = [test(env)[0] for env in _walked(search.program, setting, search.prefix)]
    except NO_VALUE:
        return True
    return any(a is b is side for a, b in pairwise(sides))


@fact
def tile_guards(program: Program) -> tuple[tuple[Expr, Test], ...]:
    """The conditions that are about tiles and arguments alone and change sides tiles away from the first, with what they give."""
    out = []
    for _, c, names in _looked_at(program):
        if "field" not in names or names & {"var", "ld", "cta_rank", "cta_id", "role_index"} or not any(far_tiles(n) for n in c.parts()):
            continue
        (text,) = texts(program, [[c]])
        if text is not None:
            out.append((c, compiled([f"bool({text[0]})"])[0]))
    return tuple(out)


def far_tiles(e: Expr) -> int:
    """How many tiles along an axis a comparison of tiles with a number looks at, where that is more than runs surely have."""
    if e.op not in ("lt", "le", "gt", "ge", "eq", "ne"):
        return 0
    constant, live = trips.linear(Expr("sub", e.args))
    if not live or not all(t.startswith("tile.") for t in live):
        return 0
    far = abs(constant) // min(abs(c) for c in live.values())
    return far if far >= SURE else 0


def met_both_ways(program: Program, setting: Setting, prefix: frozenset[str], test: Test) -> bool:
    """Whether a condition holds for some tile of a walk and not for another."""
    try:
        return len({test(env)[0] for env in _walked(program, setting, prefix)}) == 2
    except NO_VALUE:
        return False


def _walked(program: Program, setting: Setting, prefix: frozenset[str]) -> Iterator[dict[str, Any]]:
    """The environments of the tiles of a walk."""
    s = next(iter(program.schedulers.values()), None)
    if s is None:
        return
    env = {**dict.fromkeys(program.scalars, 1.0), **setting.args, "ld": reader(setting.lengths, prefix)}
    for t in islice(tile_source(program, setting, prefix)(s.name, 0), TILES):
        yield {**env, "tile": dict(zip(s.fields, t, strict=True))}


@fact
def _looked_at(program: Program) -> tuple[tuple[str, Expr, set[str]], ...]:
    """The conditions that look at tiles or members, by role, with what else they look at."""
    found = ((role, c, {n.op for n in outside_reads(c)}) for role, _, c in trips.conditions(program))
    return tuple([x for x in found if "field" in x[2] or "role_index" in x[2]])


def _tests(program: Program) -> list[Test]:
    """For each guard on members whose way arguments and tiles decide: which members pass."""
    out = []
    for role, cond, names in _looked_at(program):
        members = program.roles[role].members
        if members < 2 or "role_index" not in names or not names & {"param", "field"} or names & {"var", "ld", "cta_rank", "cta_id"}:
            continue
        (text,) = texts(program, [[of_member(cond, i) for i in range(members)]])
        if text is not None:
            out.append(compiled([f"bool({t})" for t in text])[0])
    return out


def _passed(search: Settings, setting: Setting, test: Test, most: int = 0) -> bool:
    """Whether some tile of a walk lets every member through, and as many conditions on what memory holds are met there."""
    try:
        return any(all(test(env)) and (not most or _met(search, env) >= most) for env in _walked(search.program, setting, search.prefix))
    except NO_VALUE:
        return True


def _met(search: Settings, env: dict[str, Any]) -> int:
    """How many conditions on what memory holds are met in a tile."""
    return sum(side for side, c in zip(search.guards(env), search.guard_conditions, strict=True) if reads(c))


def _deepest(search: Settings, found: list[Setting]) -> int:
    """The most conditions on what memory holds that are met in one tile of the walks."""
    if not any(reads(c) for c in search.guard_conditions):
        return 0
    try:
        return max((_met(search, env) for x in found for env in _walked(search.program, x, search.prefix)), default=0)
    except NO_VALUE:
        return 0


__all__ = ["far_tiles", "met_both_ways", "tile_guards", "together"]
