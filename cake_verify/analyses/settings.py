"""Trip settings: concrete arguments under which one run decides all trip counts.

With every sync edge of constant distance the steady state repeats, so a run with no iteration, one, and enough of them to fill every ring
twice covers the rest. The arguments are looked for, never invented: a setting is values of the run-time scalars that respect `lm.assume`,
a grid, and the numbers that `lm.ld` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from cake_ir.dtypes import DTYPES
from cake_ir.program import Expr, For, Program, Scheduler, statements
from cake_ir.scheduler import TileOrder, cluster_total, cta_tile, cta_tiles, decode_group, group_totals
from cake_verify.analyses import trips
from cake_verify.analyses.trips import NotKnown

NEVER = 10.0**9
LENGTH = "#len:"


@dataclass(slots=True, eq=False)
class Setting:
    """Arguments by scalar name, group sizes by offset tensor, the grid in clusters and the cluster walked."""

    args: dict[str, Any]
    lengths: dict[str, tuple[int, ...]] = field(default_factory=dict)
    clusters: int = 1
    cluster: int = 0
    tiles: int = 0
    trips: tuple[int, ...] = ()

    def __str__(self) -> str:
        parts = [f"{k} = {v}" for k, v in self.args.items() if not isinstance(v, float)]
        parts += [f"lengths by {k} = {list(v)}" for k, v in self.lengths.items()]
        return ", ".join([*parts, f"grid of {self.clusters} cluster{'s' if self.clusters != 1 else ''}"])


@dataclass(frozen=True, slots=True)
class Goal:
    """`tiles` tiles in one CTA, `trips` iterations of every run-time loop; `mixed` varies the lengths read from memory."""

    tiles: int
    trips: int
    mixed: bool = False


class Settings:
    """The search for settings of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.loops = [x for x in trips.loops(program) if not x.constant]
        self.scheduler = self._main_scheduler()
        self.integers = [p.name for p in program.scalars.values() if DTYPES[p.dtype or "i32"].is_integer]
        self.prefix = trips.prefix_tensors(program)
        self.read = self._tensors_read()
        self.window, self.stages = self._window()
        self.candidates = self._candidates()

    def _main_scheduler(self) -> Scheduler | None:
        for block in self.program.body:
            for s in statements(block.body):
                if isinstance(s, For) and s.kind == "tiles":
                    return self.program.schedulers[str(s.scheduler)]
        return None

    def _tensors_read(self) -> list[str]:
        """Tensors whose elements decide a trip count, or the sizes of groups."""
        names: dict[str, None] = {}
        for loop in self.loops:
            for n in (*loop.lo.walk(), *loop.hi.walk()):
                if n.op == "ld":
                    names[str(n.attrs["tensor"])] = None
        if self.scheduler is not None and self.scheduler.offsets:
            names[self.scheduler.offsets] = None
        return list(names)

    def _window(self) -> tuple[int, int]:
        """Iterations after which nothing new can happen, and the deepest ring."""
        stages = max((r.stages for r in self.program.rings.values()), default=1)
        lag, multiple = 0, 1
        for _, _, cond in trips.conditions(self.program):
            lag = max([lag, *(c for c in _offsets(cond) if 0 < c <= 64)])
            for n in cond.walk():
                if n.op == "mod" and n.args[1].op == "const" and any(x.op == "var" for x in n.args[0].walk()):
                    multiple = max(multiple, int(n.args[1].attrs["value"]))  # type: ignore[arg-type]  # a modulus is an integer
        for loop in trips.loops(self.program):
            if loop.lo.op == "const" and not loop.constant:
                lag = max(lag, min(int(loop.lo.attrs["value"]), 64))  # type: ignore[arg-type]  # bounds are integers
        return min((2 * stages + lag + 1) * min(multiple, 8), 64), stages

    def _candidates(self) -> dict[str, list[int]]:
        """Values worth trying for each unknown: multiples of the constants that divide it, with and without a remainder."""
        divisors: dict[str, set[int]] = {n: set() for n in self.integers}
        divisors |= {LENGTH + t: set() for t in self.read}
        sources = [e for loop in trips.loops(self.program) for e in (loop.lo, loop.hi)]
        sources += [c for _, _, c in trips.conditions(self.program)]
        if self.scheduler is not None:
            sources += self.scheduler.tiles
            if self.scheduler.block and self.scheduler.offsets:
                divisors[LENGTH + self.scheduler.offsets].add(self.scheduler.block)
        lets = trips.resolver_of(self.program, "")
        for source in sources:
            for n in lets(source).walk():
                if n.op in ("cdiv", "floordiv", "mod") and n.args[1].op == "const":
                    c = n.args[1].attrs["value"]
                    for inner in n.args[0].walk():
                        key = str(inner.attrs["name"]) if inner.op == "param" else LENGTH + str(inner.attrs["tensor"]) if inner.op == "ld" else ""
                        if key in divisors and isinstance(c, int) and c > 1:
                            divisors[key].add(c)
        counts = [1, 2, 3, self.stages + 1, self.stages + 2, self.window]
        out: dict[str, list[int]] = {}
        for name, cs in divisors.items():
            values: list[int] = []
            for c in sorted(cs, reverse=True)[:4]:
                whole, ragged = [c * k for k in counts], [c * (k - 1) + 1 for k in counts]
                values += ragged + whole if name.startswith(LENGTH) else whole + ragged
            out[name] = list(dict.fromkeys([*values, *counts, 0]))
        return out

    # ------------------------------------------------------------ what a choice gives

    def profile(self, choice: dict[str, int]) -> tuple[int, list[int]] | None:
        """Cluster tiles in all, and the trips of every run-time loop at the first tile; None where an assumption fails."""
        env = self._env(choice)
        try:
            for a in self.program.assumes:
                if not trips.evaluate(trips.resolver_of(self.program, "")(a.cond), env, self.program):
                    return None
            total, first = self._tiles(env)
            env["tile"] = first
            counts = [max(0, trips.evaluate(x.hi, env, self.program) - trips.evaluate(x.lo, env, self.program)) for x in self.loops]
        except (NotKnown, ZeroDivisionError, OverflowError, KeyError):
            return None
        return total, counts

    def _env(self, choice: dict[str, int]) -> dict[str, Any]:
        env: dict[str, Any] = {p.name: choice.get(p.name, 1.0) for p in self.program.scalars.values()}
        lengths = {t: (choice[LENGTH + t],) for t in self.read}
        env["ld"] = reader(lengths, self.prefix)
        env["tile"] = {}
        return env

    def _tiles(self, env: dict[str, Any]) -> tuple[int, dict[str, int]]:
        s = self.scheduler
        if s is None:
            return 1, {}
        resolve = trips.resolver_of(self.program, "")
        counts = tuple(max(0, int(trips.evaluate(resolve(e), env, self.program))) for e in s.tiles)
        if s.kind == "grouped":
            size = env["ld"](str(s.offsets), 1)
            total = 2 * sum(group_totals([0, size], s.block or 1, counts[-1], s.cluster))
            return total, dict(zip(s.fields, (0, 0, 0, 0, min(size, s.block or 1)), strict=True))
        order = order_of(s, counts)
        total = cluster_total(order)
        first = cta_tile(order, 0) if total else tuple(0 for _ in counts)
        return total, dict(zip(s.fields, first, strict=True))

    # ------------------------------------------------------------ the search

    def goals(self) -> list[Goal]:
        """What the settings have to cover: tile boundaries, a full window, one iteration, none."""
        tiled = self.scheduler is not None and self.scheduler.kind != "grid"
        if not self.loops:
            return [Goal(self.window if tiled else 1, 0), Goal(1, 0)] if tiled else [Goal(1, 0)]
        goals = [Goal(2 if tiled else 1, self.window), Goal(self.stages + 2 if tiled else 1, 1), Goal(3 if tiled else 1, 0)]
        if tiled:
            goals.append(Goal(3, 2))
        if self.read and tiled:
            goals.append(Goal(4, 2, mixed=True))
        return goals

    def find(self) -> tuple[list[Setting], list[trips.Loop]]:
        """The settings, most telling first, and the loops that none of them gives a second iteration."""
        found: dict[tuple[Any, ...], Setting] = {}
        most = [0] * len(self.loops)
        for goal in self.goals():
            choice, counts, total = self._reach(goal)
            if choice is None:
                continue
            most = [max(a, b) for a, b in zip(most, counts, strict=True)]
            setting = self._setting(goal, choice, counts, total)
            found.setdefault((tuple(setting.args.items()), tuple(setting.lengths.items()), setting.clusters, setting.cluster), setting)
        lost = [loop for loop, n in zip(self.loops, most, strict=True) if n < 2]
        return list(found.values()), lost

    def _reach(self, goal: Goal) -> tuple[dict[str, int] | None, list[int], int]:
        """Coordinate descent from one tile and one iteration towards the goal."""
        choice = {n: values[0] for n, values in self.candidates.items()}
        best, at = NEVER, choice
        counts: list[int] = []
        total = 0
        for _ in range(2):
            before = best
            for name, values in self.candidates.items():
                for value in values:
                    trial = {**at, name: value}
                    got = self.profile(trial)
                    if got is None:
                        continue
                    distance = self._distance(goal, got)
                    if distance < best:
                        best, at, counts, total = distance, trial, got[1], got[0]
                if best == 0.0:
                    break
            if best == before or best < 0.01:
                break
        return (at if best < NEVER else None), counts, total

    def _distance(self, goal: Goal, got: tuple[int, list[int]]) -> float:
        total, counts = got
        d = sum(abs(min(n, 200) - goal.trips) for n in counts)
        if total < goal.tiles:
            d += 2 * (goal.tiles - total)
        return d + 0.001 * abs(total - goal.tiles)

    def _setting(self, goal: Goal, choice: dict[str, int], counts: list[int], total: int) -> Setting:
        args = {p.name: choice.get(p.name, 1.0) for p in self.program.scalars.values()}
        lengths = {}
        for t in self.read:
            n = choice[LENGTH + t]
            lengths[t] = (n, 0, 1, n) if goal.mixed else (n,)
        persistent = self.scheduler is None or self.scheduler.kind != "grid"
        clusters = max(1, total // max(1, goal.tiles)) if persistent else max(1, total)
        return Setting(args, lengths, clusters, 0, goal.tiles, tuple(counts))


def reader(lengths: dict[str, tuple[int, ...]], prefix: frozenset[str]) -> Callable[[str, int], int]:
    """What `lm.ld` reads: offsets that grow by the lengths, the lengths themselves, or for other tensors the index."""

    def value(tensor: str, i: int) -> int:
        pattern = lengths.get(tensor)
        if tensor in prefix:
            pattern = pattern or (3,)
            whole, rest = divmod(max(i, 0), len(pattern))
            return whole * sum(pattern) + sum(pattern[:rest])
        if pattern:
            return pattern[i % len(pattern)]
        return i

    return value


def order_of(s: Scheduler, counts: tuple[int, ...]) -> TileOrder:
    """The tile space of a scheduler with its counts evaluated."""
    return TileOrder(counts, s.names, s.raster, s.swizzle, s.cluster)


def tile_source(program: Program, setting: Setting, prefix: frozenset[str]) -> Callable[[str, int], Iterable[tuple[int, ...]]]:
    """The tiles that each CTA of the walked cluster gets from each scheduler."""
    read = reader(setting.lengths, prefix)
    env: dict[str, Any] = {**setting.args, "ld": read, "tile": {}}
    resolve = trips.resolver_of(program, "")

    def tiles(name: str, rank: int) -> Iterable[tuple[int, ...]]:
        s = program.schedulers[name]
        counts = tuple(max(0, int(trips.evaluate(resolve(e), env, program))) for e in s.tiles)
        if s.kind == "grouped":
            return _grouped(s, counts[-1], setting, read, rank)
        return list(cta_tiles(order_of(s, counts), s.kind, setting.cluster, setting.clusters, rank))  # type: ignore[arg-type]  # kinds are checked

    return tiles


def _grouped(s: Scheduler, n_tiles: int, setting: Setting, read: Callable[[str, int], int], rank: int) -> list[tuple[int, ...]]:
    sizes = [read(str(s.offsets), i + 1) - read(str(s.offsets), i) for i in range(4)]
    offsets = [0, *accumulate(sizes)]
    out: list[tuple[int, ...]] = []
    linear = setting.cluster
    while (tile := decode_group(linear, offsets, s.block or 1, n_tiles, s.raster, s.swizzle, s.cluster, rank)) is not None:
        out.append((tile.group, tile.m, tile.n, tile.row0, tile.rows))
        linear += setting.clusters
    return out


def _offsets(e: Expr) -> list[int]:
    """The integer constants that an expression adds or compares with: how far a guard looks ahead or back."""
    if e.op in ("cdiv", "floordiv", "mod", "mul", "div"):
        return _offsets(e.args[0]) if e.op != "mul" else []
    if e.op == "const":
        value = e.attrs["value"]
        return [abs(value)] if isinstance(value, int) and not isinstance(value, bool) else []
    return [c for a in e.args for c in _offsets(a)]
