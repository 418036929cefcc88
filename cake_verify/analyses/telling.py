"""The setting whose run shows what values mean: several tiles along every axis, the last of them ragged."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, product
from typing import TYPE_CHECKING

from cake_ir.program import Expr, Program
from cake_ir.scheduler import TileOrder, cta_tile
from cake_verify.analyses.blocks import LENGTH
from cake_verify.analyses.fixed_scalars import put
from cake_verify.analyses.read_guards import reads
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import NO_VALUE, resolver_of

if TYPE_CHECKING:
    from cake_verify.analyses.settings import Setting, Settings


def telling(search: Settings, setting: Setting, choice: dict[str, int]) -> Setting:
    """The setting with two tiles along every axis of the tile space where arguments can give them."""
    s = search.scheduler
    if s is None or search.counts is None or s.kind == "grouped":
        return replace(setting, telling=True)
    resolve = resolver_of(search.program, "")
    turns = _turns(search.program)
    short: set[str] = set()
    several = 3 if sum(e.op != "const" for e in s.tiles) == 2 else 2
    for k, e in enumerate(s.tiles):
        names = [str(n.attrs["name"]) for n in (put(resolve(e), search.defined) if search.defined else resolve(e)).parts() if n.op == "param" and n.attrs["name"] in search.candidates]
        least = (3 if s.fields[k] in turns else several) * (s.cluster[k] if k < 2 else 1)
        several = 2
        larger = [(n, v) for n in names for v in sorted(search.candidates[n]) if v > choice[n]] if _count(search, choice, k) < least else []
        choice = _more_tiles(search, setting, choice, [{**choice, name: value} for name, value in larger], k, least, bool(turns))
        for name in names:  # one less than whole tiles, where that changes nothing else
            trial = {**choice, name: choice[name] - search.units.get(name, 1)}
            if trial[name] > 0 and search.profile(trial) == search.profile(choice):
                choice = trial
                short.add(name)
    for name in (n for n in search.candidates if n in search.program.scalars):  # the same for what only loops depend on, where it is whole now
        less, more = ({**choice, name: choice[name] + by * search.units.get(name, 1)} for by in (-1, 1))
        if less[name] > 0 and search.profile(less) == search.profile(choice) != search.profile(more):
            choice = less
        elif less[name] > 0 and (search.profile(less) != search.profile(choice) == search.profile(more) or _both_ways(search, less, choice, more)):
            if name in short and search.profile({**more, name: more[name] + search.units.get(name, 1)}) != search.profile(more):
                continue  # tiles of two elements: one more is a whole number of them again
            choice = more  # what rounds down leaves something out then, and parts from what rounds up
    ragged = _ragged_ends(search, setting, choice)
    if ragged != choice:
        choice, setting = ragged, replace(setting, lengths=search.lengths_of(ragged, search.environment(ragged)))
    if s.kind == "grid" and search.read:
        choice, cluster = _at_work(search, setting, choice)
    else:
        cluster = None
    profile = search.profile(choice)
    if profile is None:
        return replace(setting, telling=True)
    total = profile[0]
    env = search.environment(choice)
    args = {p: env[p] for p in search.program.scalars}
    if search.bounds and not setting.mixed:  # what is read keeps to bounds that other arguments may have moved
        setting = replace(setting, lengths=search.lengths_of(choice, env))
    if s.kind == "grid":
        if search.read and not setting.mixed:
            setting = replace(setting, lengths=search.lengths_of(choice, env), trips=profile[1])
        return replace(setting, args=args, clusters=max(1, total), cluster=max(0, total - 1) if cluster is None else cluster, telling=True)
    clusters = 1 if total < 4 else 2 if total == 6 else (total // 3) | 1  # a stride that meets odd and even tiles of each axis
    return replace(setting, args=args, clusters=clusters, cluster=0 if s.raster == "heavy_first" else min(1, clusters - 1), tiles=-(-total // clusters), telling=True)


def _turns(program: Program) -> set[str]:
    """The fields of tiles that count what flags are raised to: who waits for the wrong turn is only told by a third one."""
    values = [resolver_of(program, s.role.name)(e) for s in sites(program).of("spin", "signal") if isinstance(e := s.op.operands.get("value"), Expr)]
    return {str(n.attrs["name"]) for e in values for n in e.parts() if n.op == "field"}


def _more_tiles(search: Settings, setting: Setting, choice: dict[str, int], trials: list[dict[str, int]], k: int, least: int, handed_on: bool) -> dict[str, int]:
    """The first trial with so many tiles along an axis and the same rounds; where tiles that hand on by flags share out the rounds, the first that leaves two of them, or does with another argument larger, too."""
    shared = []
    for trial in trials:
        if _count(search, trial, k) >= least:
            if (p := search.profile(trial)) is not None and p[1] == setting.trips:
                return trial
            shared.append(trial)
    for trial in shared if handed_on else ():
        for other in (trial, *({**trial, name: value} for name, values in search.candidates.items() for value in (*values, *(least * v for v in values)) if value > trial[name] == choice[name])):
            p = search.profile(other)
            if p is not None and len(p[1]) == len(setting.trips) and all(x >= min(2, y) for x, y in zip(p[1], setting.trips, strict=True)):
                return other
    return choice


def _both_ways(search: Settings, less: dict[str, int], choice: dict[str, int], more: dict[str, int]) -> bool:
    """Whether some loops round an argument down and others round it up."""
    below, here, above = (p[1] if (p := search.profile(x)) is not None else () for x in (less, choice, more))
    if not len(below) == len(here) == len(above):
        return False
    changed = [(a != b, b != c) for a, b, c in zip(below, here, above, strict=True)]
    return (True, True) not in changed and (True, False) in changed and (False, True) in changed


def _ragged_ends(search: Settings, setting: Setting, choice: dict[str, int]) -> dict[str, int]:
    """Short sequences, with something to do for the last tile, where nothing but branches asks how long they are: in long ones no tile meets an end."""
    if setting.mixed or not search.prefix:
        return choice
    counted = {str(n.attrs["tensor"]) for x in search.loops for e in (x.lo, x.hi) for n in e.parts() if n.op == "ld" and "tensor" in n.attrs}
    for name in (LENGTH + t for t in search.read if t in search.prefix and t not in counted and t != search.scheduler.offsets):  # type: ignore[union-attr]  # there is one, see above
        shorter = (v for v in sorted(search.candidates[name]) if 0 < v < choice[name])
        choice = next((trial for v in islice(shorter, LENGTHS) if _works(search, setting, trial := {**choice, name: v}, -1)), choice)
    return choice


LENGTHS, MOST = 12, 64
"""Numbers to be read that are tried for one tensor, and for all of them together."""


def _at_work(search: Settings, setting: Setting, choice: dict[str, int]) -> tuple[dict[str, int], int | None]:
    """Numbers in memory that give the last tile of a grid something to do, else the last tile that has something to do with what is there.

    A tile behind the end of its sequence says nothing about where the others read and write.
    """
    if setting.mixed or _works(search, setting, choice, -1):
        return choice, None
    names = [LENGTH + t for t in search.read]
    longer = [sorted({v for v in search.candidates[n] if v >= choice[n]})[:LENGTHS] for n in names]
    for values in islice(product(*longer), MOST * len(names)):
        trial = {**choice, **dict(zip(names, values, strict=True))}
        if _works(search, setting, trial, -1):
            return trial, None
    total = (search.profile(choice) or (0,))[0]
    return choice, next((i for i in range(total - 1, max(-1, total - MOST), -1) if _works(search, setting, choice, i)), None)


def _works(search: Settings, setting: Setting, choice: dict[str, int], cluster: int) -> bool:
    """Whether the tile of a cluster (the last one for -1) passes the conditions on memory, and has the loops that the first tile has."""
    s = search.scheduler
    assert s is not None and search.counts is not None
    try:
        if (profile := search.profile(choice)) is None:
            return False
        env = search.environment(choice)
        order = TileOrder(search.counts(env), s.names, s.raster, s.swizzle, s.cluster, s.deal)
        at = cta_tile(order, cluster if cluster >= 0 else profile[0] - 1)
        env["tile"] = dict(zip(s.fields, at, strict=True))
        sides, rounds = search.guards(env), search.trips(env)
    except NO_VALUE:
        return False
    return all(side for side, c in zip(sides, search.guard_conditions, strict=True) if reads(c)) and all(r or not n for r, n in zip(rounds, setting.trips, strict=True))


def _count(search: Settings, choice: dict[str, int], k: int) -> int:
    """Tiles along one axis."""
    assert search.counts is not None
    return search.counts(search.environment(choice))[k]
