"""A whole small grid walked at once: global memory between CTAs, between the roles of a CTA, and the flags by which CTAs follow each other.

The machine and its knowledge are those of the walk of one cluster; here every cluster of the grid has members, all share one set of bits,
and what the operations do to tensors that a launch both reads and writes is compared box by box. A grid is walked with one CTA a tile, with
two clusters and with one, since a persistent launch may be as small as the device makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from cake_ir.ops import effects_of
from cake_ir.ops.effects import Drain, Flag
from cake_ir.program import Assign, Op, Program
from cake_ir.scheduler import cluster_total
from cake_ir.walk.agents import BLOCKED
from cake_verify.analyses import ranges, trips
from cake_verify.analyses.grid_access import BY_NAME, Touching, contended, touched, touching
from cake_verify.analyses.grid_cells import FLAG, UPDATE, WRITE, Access, Cells
from cake_verify.analyses.grid_words import Wait, Words
from cake_verify.analyses.machine import LIMIT, Machine, Stuck
from cake_verify.analyses.plan import Plan, Step
from cake_verify.analyses.settings import Setting
from cake_verify.analyses.state import Cta, Found, Member, Undecided, World, open_epoch
from cake_verify.analyses.tiling import order_of, reader, tile_source
from cake_verify.analyses.value_bounds import Bounds
from cake_verify.analyses.words import call

MOST_CLUSTERS = 31
"""Clusters of a persistent grid that are walked side by side."""

MOST_TILES = 100_000
"""Tiles of a grid that are walked: those in which nothing happens cost time too."""

ALWAYS_RESIDENT = 48
"""Tiles up to which a persistent launch has a CTA for each: the SMs of the smallest device of the tables (DGX Spark)."""


CHOSEN, UNEVEN, OTHER = "chosen", "uneven", "other"
SHARED = 3_000
"""Operations of grids whose tiles share their work unevenly, where there are any: what the first pair of tiles does says little of a third one."""


@dataclass(slots=True, eq=False)
class GridRun:
    """How one grid ended: what was found, or who waits for which flag; the pairs of accesses and the (waits, updates) that stay open; `at`: the operation that `why` is about."""

    plan: Plan
    setting: Setting
    clusters: int
    found: Found | None = None
    waits: list[Wait] = field(default_factory=list)
    doubts: list[tuple[str, Access, Access]] = field(default_factory=list)
    open: list[tuple[int, int]] = field(default_factory=list)
    events: int = 0
    why: str = ""
    met: set[int] = field(default_factory=set)
    at: int | None = None


class GridMachine:
    """The steps of a program with what they do to contended tensors."""

    def __init__(self, machine: Machine, tensors: frozenset[str], alias: Mapping[str, str] | None = None) -> None:
        self.plan, self.base, self.tensors, self.alias = machine.plan, machine, tensors, alias or {}
        self.awaited = {self.alias.get(x, x) for op in self.plan.program.ops if op.name == "spin" for x in (str(op.attrs["flags"]),)}

    def run(self, setting: Setting, prefix: frozenset[str], clusters: int, limit: int, races: bool = True) -> GridRun:
        """Walk a grid of `clusters` clusters; without `races` only its flags are followed."""
        plan, result = self.plan, GridRun(self.plan, setting, clusters)
        walk = copy(self.base)
        state = _State(plan, Bounds(plan, setting.args), _extents(plan.program, setting))
        state.cells.blind = not races
        walk.steps = [self._step(state, i, step) for i, step in enumerate(self.base.steps)]
        front = World()
        ctas: list[Cta] = []
        worlds: list[World] = [front]
        for c in range(clusters):
            world = plan.world()
            worlds.append(world)
            world.values = reader(setting.lengths, prefix)
            at = replace(setting, clusters=clusters, cluster=c)
            walk.members(world, setting.args, tile_source(plan.program, at, prefix), state.extents, c)
            for m in world.members:
                m.number, m.clock = len(front.members), front
                front.members.append(m)
            state.numbers |= {id(cta): c * plan.ranks + cta.rank for cta in world.ctas}
            ctas += world.ctas
        plan.regions.on_split = plan.splitter(ctas)
        try:
            walk.run(front, None, limit)
            mixed = next((op for op in state.cells.before if op in state.cells.behind), None)
            if mixed is not None:
                tensor, read, write = state.cells.before[mixed]
                result.found = Found("S042", tensor=tensor, old=read, now=write, behind=state.cells.behind[mixed])
            elif (lone := state.cells.unwritten()) is not None:
                tensor, read, left = lone
                result.found = Found("S042", tensor=tensor, old=read, now=None, left=left)
        except Found as found:
            result.found = found
            if found.code in ("S039", "S040"):
                found.data["numbers"] = state.numbers
        except Stuck:
            result.waits = [w for w in state.words.waits.values() if not w.member.done]
            for w in result.waits:
                w.scope = {**w.member.variables(), "#cta": state.numbers[id(w.member.cta)]}
        except Undecided as u:
            result.why = u.why
        if result.found is None and not result.waits:
            for world in worlds:
                world.members.clear()  # they point back at their world
        state.cells.close()
        result.met = state.met
        result.events, result.doubts, result.open = front.events, state.cells.doubts, state.words.open
        return result

    def _step(self, state: _State, number: int, base: Step | None) -> Step | None:
        site = self.plan.sites.get(number)
        if site is None:
            return base
        op, program = site.op, self.plan.program
        effects = effects_of(op, program)
        flag = next((e for e in effects if isinstance(e, Flag)), None)
        if flag is not None and flag.kind == "spin":
            flags = str(op.attrs["flags"])
            return _noted(state.met, number, state.words.spin(op, self.alias.get(flags, flags)))
        if any(isinstance(e, Drain) and e.engine == "bulk" for e in effects) and not bool(op.attrs.get("read", True)):
            return _after(base, state.written(int(op.attrs.get("pending") or 0)))  # type: ignore[call-overload]  # a compile-time int
        bound = state.bounds.binding(op, site.stmt.targets) if isinstance(site.stmt, Assign) else None
        if bound is not None:
            return _after(base, bound)
        access = touched(program).get(op)
        if access is None or self.alias.get(access[0], access[0]) not in self.tensors:
            return base
        found = touching(self.plan, op, state.bounds, state.extents)
        assert found is not None  # it touches that tensor
        if found.tensor in self.alias:
            found = replace(found, tensor=self.alias[found.tensor])
        if flag is not None:
            return _noted(state.met, number, _after(base, state.signal(op, found)))
        if found.kind == UPDATE and found.tensor in self.awaited:
            base = _after(base, state.words.update(op, found))
        if "barrier" in op.attrs:
            return _before(state.load(op, found, site.role), base)
        return _after(base, state.access(found))


class _State:
    """Global memory and flags of one run, and the steps that use them."""

    def __init__(self, plan: Plan, bounds: Bounds, extents: dict[tuple[str, int], int]) -> None:
        self.plan, self.bounds, self.extents = plan, bounds, extents
        self.cells = Cells(_produced(plan.program))
        self.words = Words(plan)
        self.stores: dict[int, list[int]] = {}
        self.numbers: dict[int, int] = {}
        self.met: set[int] = set()

    def _access(self, t: Touching, m: Member, v: tuple[Any, ...], box: Any, bit: int, plain: int = 0) -> Access:
        scope = {**m.variables(), "#cta": self.numbers[id(m.cta)]}
        tile = tuple(scope.get(loop.var) for loop in self.plan.sites[t.op.id].loops if loop.kind == "tiles")
        lanes = (*t.lanes[:-1], tuple([scope.get(var) for var in t.lanes[-1]])) if isinstance(t.lanes, tuple) and t.lanes[0] == BY_NAME else t.lanes
        entry = None if t.entry is None else (t.entry[0], tuple([scope[var][k] for var, k in t.entry[1]]))
        return Access(t.kind, bit, m, t.op.id, scope, box, t.sure, plain, lanes, (scope["#cta"], tile), t.told, entry, t.inner(m, v) if t.inner is not None else None, t.heard)

    def access(self, t: Touching) -> Step:
        """Ordinary accesses, those of cp.async, and bulk stores."""
        cells, stores = self.cells, self.stores

        def step(m: Member, v: tuple[Any, ...]) -> Any:
            box = t.where(m, v)
            if t.engine == "bulk":
                bit = m.clock.bit()
                stores.setdefault(m.number, []).append(bit)
                if box is not None:
                    cells.touch(t.tensor, self._access(t, m, v, box, bit), m.K | m.E, m.P)
                return None
            if box is None:
                return None
            if t.engine:
                bit = m.cp_open[-1][0] if m.cp_open else m.clock.bit()
            else:
                bit = m.cur or open_epoch(m)
            plain = 0
            if t.kind == WRITE and not t.engine:
                m.gw |= bit
                plain = bit
            cells.touch(t.tensor, self._access(t, m, v, box, bit, plain), m.K)
            return None

        return step

    def load(self, op: Op, t: Touching, role: str) -> Step:
        """Copies into shared memory that complete on a barrier: who waits for it knows that the tensor has been read."""
        share = self.plan.share(op, role)
        slot = self.plan.code.ops[op.id].index.get("stage")
        axis = op.attrs.get("multicast")
        receivers = self.plan.multicast(str(axis)) if axis and self.plan.ranks > 1 else None
        landings = self.plan.landings(str(op.attrs["barrier"]))

        def step(m: Member, v: tuple[Any, ...]) -> Any:
            box = t.where(m, v)
            n = 0 if slot is None else v[slot]
            if box is None or n < 0:
                return None
            bit = m.clock.bit()
            for r in receivers[m.cta.rank] if receivers is not None else (m.cta.rank,):
                m.world.ctas[landings[r]].bars[share.barrier][n % share.stages].ak |= bit
            self.cells.touch(t.tensor, self._access(t, m, v, box, bit), m.K | m.E, m.P)
            return None

        return step

    def written(self, pending: int) -> Step:
        """Bulk stores of the issuing thread have written global memory."""

        def step(m: Member, v: tuple[Any, ...]) -> Any:
            mine = self.stores.get(m.number, [])
            gone = len(mine) - pending
            for bit in mine[: max(gone, 0)]:
                if m.single:
                    m.K |= bit
                else:
                    m.E |= bit
            del mine[: max(gone, 0)]
            return None

        return step

    def signal(self, op: Op, t: Touching) -> Step:
        """The member has met; one thread raises the word and releases what all of it knew."""
        index = self.plan.code.ops[op.id].index
        at, value = index["i"], index["value"]

        def step(m: Member, v: tuple[Any, ...]) -> Any:
            bit = m.clock.bit()
            now = self._access(t, m, v, ((v[at], v[at] + 1),), bit)
            word = self.words.word(t.tensor, v[at], "signal", op)
            if word.signals and not word.signals[-1][2] & (m.K | m.E) and t.sure:
                raise Found("S040", tensor=t.tensor, old=word.signals[-1][3], now=now)
            self.cells.touch(t.tensor, now, m.K)
            known = m.K | m.E
            m.K |= bit  # the one who signals again knows that it did
            word.value = v[value]
            word.signals.append((v[value], known | bit, bit, now))
            return None

        return step


def _noted(met: set[int], number: int, step: Step) -> Step:
    """A step of which it is kept that a member has come to it."""

    def noted(m: Member, v: tuple[Any, ...]) -> Any:
        met.add(number)
        return step(m, v)

    return noted


def _before(first: Step, base: Step | None) -> Step:
    if base is None:
        return first

    def step(m: Member, v: tuple[Any, ...]) -> Any:
        first(m, v)
        return base(m, v)

    return step


def _after(base: Step | None, then: Callable[[Member, tuple[Any, ...]], Any]) -> Step:
    if base is None:
        return then

    def step(m: Member, v: tuple[Any, ...]) -> Any:
        reply = base(m, v)
        if reply is not BLOCKED:
            then(m, v)
        return reply

    return step


def _produced(program: Program) -> frozenset[str]:
    """Tensors that hold nothing of which the launcher says so: what blocks hand on through them, they have written. Only where there are flags."""
    if not any("flags" in op.attrs for op in program.ops):
        return frozenset()
    return frozenset(p.name for p in program.tensors.values() if not (p.const or p.zeroed or p.inout))


def _extents(program: Program, setting: Setting) -> dict[tuple[str, int], int]:
    return {(p.name, k): (e if isinstance(e, int) else int(setting.args.get(e, 1))) for p in program.tensors.values() for k, e in enumerate(p.extents)}


# ------------------------------------------------------------------ which grids


def walks(machine: Machine, settings: Iterable[Setting], prefix: frozenset[str], work: int, alias: Mapping[str, str] | None = None, more: Callable[[list[Setting]], Iterable[Setting]] = lambda _: ()) -> list[GridRun]:
    """The grids of a program that has contended tensors, until one of them shows a fault; empty where there is nothing to look at.

    `more` gives further settings for flags to which the chosen ones do not come."""
    program = machine.plan.program
    tensors = contended(program, alias)
    if not tensors:
        return []
    grid = GridMachine(machine, tensors, alias)
    out: list[GridRun] = []
    every = list(settings)
    chosen = _chosen(every)
    flags = {op.id for op in program.ops if op.name in ("spin", "signal") and op.id in machine.plan.sites}
    spent = 0
    for setting, by in _in_turn(chosen, every, more):
        met = by == CHOSEN or flags <= set().union(*(run.met for run in out))
        if by != CHOSEN and met and (by == OTHER or not 0 < spent < SHARED):  # further ones only where the grids before have not come to every flag
            break
        many = max((_total(program, name, setting, prefix) for name in program.schedulers), default=1)
        if many > MOST_TILES:
            out.append(GridRun(machine.plan, setting, 1, why=f"{many:,} tiles"))
            return out
        for clusters in _sizes(program, setting, prefix)[: None if by == CHOSEN else 1]:
            run = grid.run(setting, prefix, clusters, min(LIMIT, work))
            if by != CHOSEN and run.why:  # too much to walk, in search of a flag: one that none comes to is told in the end
                work -= run.events
                break
            if run.found is not None and run.found.code == "S039":  # where a flag says nothing, what it should have ordered is a consequence
                flagged = grid.run(setting, prefix, clusters, min(LIMIT, work), races=False)
                run = flagged if flagged.found is not None and flagged.found.code == "S040" and flagged.found.data["tensor"] in grid.awaited else run
            out.append(run)
            work -= run.events
            spent += run.events if by == UNEVEN else 0
            if run.found is not None or run.waits or run.why or work <= 0:
                return out
    never = min(flags - set().union(*(run.met for run in out)), default=None)
    if never is not None and out:
        out.append(GridRun(machine.plan, out[-1].setting, out[-1].clusters, why=f"no grid that was walked comes to {call(program.ops[never])}", at=never))
    return out


def _in_turn(chosen: list[Setting], every: list[Setting], more: Callable[[list[Setting]], Iterable[Setting]]) -> Iterator[tuple[Setting, str]]:
    yield from ((s, CHOSEN) for s in chosen)
    yield from ((s, UNEVEN) for s in more(every))
    yield from ((s, OTHER) for s in every if not any(s is c for c in chosen))


def _chosen(settings: list[Setting]) -> list[Setting]:
    """The setting with several tiles along each axis, and the one whose loops run longest."""
    told = [s for s in settings if s.telling]
    longest = max((s for s in settings if not s.telling), key=lambda s: (min(s.tiles, 2), s.trips), default=None)
    return [*told, *([longest] if longest is not None else [])]


def _sizes(program: Program, setting: Setting, prefix: frozenset[str]) -> list[int]:
    """Clusters of the grids that are walked: one CTA a tile, two clusters, one."""
    if not program.schedulers:
        return [1] if program.launch.grid == "tiles" else [2, 1]
    total = max(_total(program, name, setting, prefix) for name in program.schedulers)
    if all(s.kind == "grid" for s in program.schedulers.values()):
        return [max(1, min(total, MOST_CLUSTERS))]
    most = max(1, min(total, MOST_CLUSTERS))
    if _resident(program):
        return [max(1, min(total, ALWAYS_RESIDENT))]
    return list(dict.fromkeys((most, min(2, most), 1)))


def _total(program: Program, name: str, setting: Setting, prefix: frozenset[str]) -> int:
    s = program.schedulers[name]
    if s.kind == "grouped":
        return 6
    env: dict[str, Any] = {**setting.args, "ld": reader(setting.lengths, prefix), "tile": {}}
    return cluster_total(order_of(s, trips.tile_counts(program, name)(env)))


def _resident(program: Program) -> bool:
    """Whether every tile surely has its own CTA: their number is bounded, and low."""
    for s in program.schedulers.values():
        most = 1.0
        for e in s.tiles:
            most *= ranges.of(program, None, e).hi
        if s.kind == "grouped" or most > ALWAYS_RESIDENT:
            return False
    return True


__all__ = ["FLAG", "GridMachine", "GridRun", "Wait", "walks"]
