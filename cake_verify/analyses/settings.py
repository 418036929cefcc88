"""Trip settings: concrete arguments under which one run decides all trip counts.

With every sync edge of constant distance the steady state repeats, so a run with no iteration, one, and enough of them to fill every ring
twice covers the rest. The arguments are looked for, never invented: a setting is values of the run-time scalars that respect `lm.assume`,
a grid, and the numbers that `lm.ld` reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake_ir.derive.structure import listed, stated
from cake_ir.dtypes import DTYPES
from cake_ir.program import Expr, For, If, Program, Scheduler
from cake_ir.scheduler import group_totals
from cake_verify.analyses import read_guards, trips
from cake_verify.analyses.blocks import LENGTH, blocks_of
from cake_verify.analyses.count_text import Env, compiled, texts
from cake_verify.analyses.farther import go_farther
from cake_verify.analyses.fixed_scalars import fixed_scalars
from cake_verify.analyses.goals import MOST_LAG, UNEVEN, Goal, goals_of, off_tiles, off_trips, uneven
from cake_verify.analyses.later_tiles import later
from cake_verify.analyses.member_guards import together
from cake_verify.analyses.outline import each_of, outline, rounds_of
from cake_verify.analyses.positions import declared_values
from cake_verify.analyses.read_numbers import outside_reads
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.setting import Setting, own_index
from cake_verify.analyses.telling import telling
from cake_verify.analyses.tiling import reader
from cake_verify.analyses.trips import NO_VALUE, Loop

NEVER = 10.0**9
TRIALS = 20_000
"""Arguments that are tried for one program; the schedules of today need a few hundred."""

Profile = tuple[int, tuple[int, ...]]
"""What arguments give: cluster tiles in all, and the trips of every run-time loop."""


class Settings:
    """The search for settings of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.loops = [x for x in trips.loops(program) if not x.constant]
        self.scheduler = self._main_scheduler()
        self.integers = [p.name for p in program.scalars.values() if DTYPES[p.dtype or "i32"].is_integer]
        self.ones: dict[str, Any] = {**dict.fromkeys(program.scalars, 1.0), "ld": own_index, "tile": {}}
        self.prefix = prefix_tensors(program)
        self.read = self._tensors_read()
        self.branched = read_guards.only_branched(self)
        self.bounds = {t: stated for t in self.branched if (stated := declared_values(program, t)) is not None}
        self.least = read_guards.least_of(program, [t for t in self.read if t not in self.bounds and t not in self.prefix])
        self.window, self.stages = self._window()
        self.profiles: dict[tuple[int, ...], Profile | None] = {}
        self.dependents, self.defined = fixed_scalars(program, self.integers)
        self.unknown: list[Loop] = []
        self.guard_conditions: list[Expr] = []
        self.guarded: list[If] = []
        self.wholes: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
        self.sides: dict[tuple[int, ...], tuple[bool, ...]] = {}
        self.trials = 0
        self.untried: list[If] = []
        self.one_sided: list[If] = []
        self.starts: list[dict[str, int]] = []
        self._functions()
        self.candidates = self._candidates()

    def _main_scheduler(self) -> Scheduler | None:
        for _, body in listed(self.program):
            for s in body:
                if isinstance(s, For) and s.kind == "tiles":
                    return self.program.schedulers[str(s.scheduler)]
        return None

    def _tensors_read(self) -> list[str]:
        """Tensors whose elements decide a trip count or which way a branch goes, or the sizes of groups."""
        names: dict[str, None] = {}
        bounds = [e for loop in self.loops for e in (loop.lo, loop.hi)]
        for e in (*bounds, *(c for _, _, c in trips.conditions(self.program))):
            for n in e.parts():
                if n.op == "ld" and "tensor" in n.attrs:
                    names[str(n.attrs["tensor"])] = None
        if self.scheduler is not None and self.scheduler.offsets:
            names[self.scheduler.offsets] = None
        return list(names)

    def _window(self) -> tuple[int, int]:
        """Iterations after which nothing new can happen, and the deepest ring: guards on a loop's counter lengthen prologue and epilogue."""
        stages = max((r.stages for r in self.program.rings.values()), default=1)
        lag, multiple = 0, 1
        running = {x.stmt.var for x in self.loops}
        for _, _, cond in trips.conditions(self.program):
            for n in cond.parts():
                if n.op in ("lt", "le", "gt", "ge", "eq", "ne"):
                    constant, terms = trips.linear(Expr("sub", n.args))
                    steps = [abs(c) for t, c in terms.items() if t.startswith("?") and c]
                    if steps:
                        counted = any(t[1:] in running for t in terms if t.startswith("?"))
                        lag = max(lag, min(abs(constant) // min(steps), MOST_LAG if counted else 16))
                if n.op == "mod" and n.args[1].op == "const" and any(x.op == "var" for x in n.args[0].parts()):
                    multiple = max(multiple, int(n.args[1].attrs["value"]))  # type: ignore[arg-type]  # a modulus is an integer
        for loop in trips.loops(self.program):
            if loop.lo.op == "const" and not loop.constant:
                lag = max(lag, min(int(loop.lo.attrs["value"]), 16))  # type: ignore[arg-type]  # bounds are integers
        return max(min((2 * stages + lag + 1) * min(multiple, 8), 64), min(2 * stages + max(lag + 1, multiple), MOST_LAG)), stages

    def _functions(self) -> None:
        """Compile what a choice of arguments gives: assumptions, tile counts, trip counts, fixed scalars."""
        program, resolve = self.program, trips.resolver_of(self.program, "")
        assumed, lengths = [resolve(a.cond) for a in program.assumes], [trips.lengths(program, loop) for loop in self.loops]
        alone = not self.dependents and not self.read
        whole = outline(program, self.scheduler, assumed, lengths) if alone else ""
        if not whole:  # something in them may not be known: that is left out
            assumed = [e for e, text in zip(assumed, texts(program, [[e] for e in assumed]), strict=True) if text is not None]
            known = texts(program, lengths)
            self.unknown += [loop for loop, text in zip(self.loops, known, strict=True) if text is None]
            self.loops = [loop for loop, text in zip(self.loops, known, strict=True) if text is not None]
            lengths = [each for each, text in zip(lengths, known, strict=True) if text is not None]
            whole = outline(program, self.scheduler, assumed, lengths) if alone else ""
        self._assumed, self.lengths = assumed, lengths
        self.lasting = None if self.dependents else trips.arguments_of(e for each in lengths for e in each)
        branches: list[tuple[If, Expr]] = []
        for role, branch, cond in trips.conditions(program):
            names = {n.op for n in outside_reads(cond)}
            reads = "ld" in names
            if reads or ("param" in names and not names & {"var", "role_index", "cta_rank", "cta_id", "field"}):
                branches.append((branch, read_guards.by_some_member(program, role, cond, names)))
        branches += read_guards.one_apart(branches)
        sides = texts(program, [[cond] for _, cond in branches])
        self.guarded = [branch for (branch, _), text in zip(branches, sides, strict=True) if text is not None]
        self.guard_conditions = [cond for (_, cond), text in zip(branches, sides, strict=True) if text is not None]
        conditions, fixed = [f"bool({text[0]})" for text in sides if text], list(self.dependents.values())
        self.outlined: Callable[[Env], tuple[Any, ...]] | None = None
        self._all_assumed: Callable[[Env], tuple[Any, ...]] | None = None  # compiled with the rest, or when it is first asked for
        self._all_trips: Callable[[Env], tuple[Any, ...]] | None = None
        if whole:
            self.guards, self.fixed, self.outlined = compiled(conditions, fixed, [whole])
        else:  # then the parts are asked for one by one
            self.guards, self.fixed, self._all_assumed, self._all_trips = compiled(conditions, fixed, each_of(program, assumed), rounds_of(program, lengths))
        self.counts = trips.tile_counts(program, self.scheduler.name) if self.scheduler else None

    def assumed(self, env: Env) -> tuple[Any, ...]:
        """Every assumption for given arguments."""
        self._all_assumed = self._all_assumed or compiled(each_of(self.program, self._assumed))[0]
        return self._all_assumed(env)

    def trips(self, env: Env) -> tuple[Any, ...]:
        """The length of every loop for given arguments and the fields of a tile."""
        self._all_trips = self._all_trips or compiled(rounds_of(self.program, self.lengths))[0]
        return self._all_trips(env)

    def _candidates(self) -> dict[str, list[int]]:
        """Values worth trying for each unknown: multiples of the constants that divide it, with and without a remainder."""
        sources = [e for loop in trips.loops(self.program) for e in (loop.lo, loop.hi)]
        sources += [c for _, _, c in trips.conditions(self.program)]
        sources += [a.cond for a in self.program.assumes]
        if self.scheduler is not None:
            sources += self.scheduler.tiles
        names = [*(n for n in self.integers if n not in self.dependents), *(LENGTH + t for t in self.read)]
        divisors = blocks_of(sources, names, self.defined, trips.resolver_of(self.program, ""))
        if self.scheduler is not None and self.scheduler.block and self.scheduler.offsets:
            divisors[LENGTH + self.scheduler.offsets].add(self.scheduler.block)
        edges: dict[str, list[int]] = {}
        for cond in self.guard_conditions:
            for n in cond.parts():
                if n.op in ("lt", "le", "gt", "ge", "eq", "ne"):
                    constant, terms = trips.linear(Expr("sub", n.args))
                    for name, c in terms.items():
                        if name in divisors and c:
                            at = -constant // c
                            edges.setdefault(name, []).extend((at, at + 1, at - 1))
        units = self.units = self._units()
        self.blocks = {name: (max(cs), units.get(name, 1)) for name, cs in divisors.items() if cs and max(cs) > units.get(name, 1)}
        counts = [1, 2, 3, self.stages + 1, self.stages + 2, self.window]
        for name, values in read_guards.values_of(self.guard_conditions).items():
            edges.setdefault(LENGTH + name, []).extend(values)
        out: dict[str, list[int]] = {}
        for name, cs in divisors.items():
            values = []
            for c in sorted(cs, reverse=True)[:4]:
                u = units.get(name, 1)
                whole, ragged = [c * k for k in counts], [n for k in counts for n in (c * (k - 1) + u, c * k - u)]
                values += ragged + whole if name.startswith(LENGTH) else whole + ragged
            out[name] = [v for v in dict.fromkeys([*values, *counts, *edges.get(name, ()), 0]) if v >= 0 or name.startswith(LENGTH)]
        return read_guards.passing_first(self, out)

    def _units(self) -> dict[str, int]:
        """What each argument is assumed to be a multiple of."""
        found: dict[str, int] = {}
        for a in self.program.assumes:
            for n in stated(trips.resolver_of(self.program, "")(a.cond)):
                if n.op == "eq" and n.args[0].op == "mod" and n.args[1].op == "const" and n.args[1].attrs["value"] == 0:
                    x, c = n.args[0].args
                    if x.op == "param" and c.op == "const":
                        found[str(x.attrs["name"])] = max(found.get(str(x.attrs["name"]), 1), int(c.attrs["value"]))  # type: ignore[call-overload]  # a modulus
        return found

    # ------------------------------------------------------------ what a choice gives

    def profile(self, choice: dict[str, int]) -> Profile | None:
        """Cluster tiles in all, and the trips of every run-time loop at the first tile; None where an assumption fails."""
        key = tuple(choice.values())
        if (found := self.profiles.get(key, False)) is False:
            found = self.profiles[key] = self._profile(choice)
        return found  # type: ignore[return-value]  # what `_profile` gave

    def sides_of(self, choice: dict[str, int]) -> tuple[bool, ...]:
        """Which way every condition on arguments goes."""
        if not self.guard_conditions:
            return ()
        key = tuple(choice.values())
        if key not in self.sides:
            self.sides[key] = self.guards(read_guards.at_first(self, choice))
        return self.sides[key]

    def _profile(self, choice: dict[str, int]) -> Profile | None:
        try:
            if self.outlined is not None:
                return self.outlined({**self.ones, **choice})[0]  # type: ignore[no-any-return]  # what `outline` says
            env = self.environment(choice)
            if not all(self.assumed(env)):
                return None
            total, env["tile"] = self.tiles(env)
            return total, self.trips(env)
        except NO_VALUE:
            return None

    def environment(self, choice: dict[str, int]) -> dict[str, Any]:
        """Every scalar's value under a choice, and what memory holds."""
        env: dict[str, Any] = {**self.ones, **choice}
        env["ld"], env["tile"] = own_index, {}
        if self.dependents:
            for name, value in zip(self.dependents, self.fixed(env), strict=True):
                env[name] = value
        if self.read:
            env["ld"] = reader(self.lengths_of(choice, env), self.prefix)
        return env

    def lengths_of(self, choice: dict[str, int], env: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        """What memory holds under a choice: one number a tensor."""
        return {t: (read_guards.held(self, t, choice[LENGTH + t], env),) for t in self.read} if self.read else {}

    def tiles(self, env: dict[str, Any]) -> tuple[int, dict[str, int]]:
        """Cluster tiles in all, and the fields of the first tile."""
        s = self.scheduler
        if s is None:
            return 1, {}
        assert self.counts is not None
        counts = self.counts(env)
        if s.kind == "grouped":
            size = env["ld"](str(s.offsets), 1)
            return 2 * sum(group_totals([0, size], s.block or 1, counts[-1], s.cluster)), dict(zip(s.fields, (0, 0, 0, 0, min(size, s.block or 1)), strict=True))
        total = 1
        for k, n in enumerate(counts):
            total *= -(-n // s.cluster[k]) if k < 2 else n
        if s.raster == "heavy_first" and total:
            return total, {s.fields[0]: -(-counts[0] // s.cluster[0]) * s.cluster[0] - s.cluster[0]}
        return total, {}

    # ------------------------------------------------------------ the search

    def find(self) -> tuple[list[Setting], list[Loop]]:
        """The settings, most telling first, and the loops that none of them gives a second iteration."""
        found, choices, most = self._cover()
        if go_farther(self, choices, most):
            found, choices, most = self._cover()
        if found:
            i = min(range(len(found)), key=lambda i: (found[i].mixed, read_guards.kept_out(self, choices[i]), sum([n < 2 for n in found[i].trips]), abs(max(found[i].trips, default=3) - max(3, self.stages + 1))))
            told = telling(self, found[i], choices[i])
            if told.tiles < found[i].tiles and self.stages + 1 > max(found[i].trips, default=0) * told.tiles:
                found.append(told)  # as few tiles a block would not bring it back to a slot
            else:
                found[i] = told
        found += together(self, found)
        lost = [loop for loop, n in zip(self.loops, most, strict=True) if n < 2]
        return found, [*later(self, lost, found), *self.unknown]

    def _cover(self) -> tuple[list[Setting], list[dict[str, int]], list[int]]:
        """Settings for every goal, what was chosen for each, and the most iterations of every loop."""
        found: list[Setting] = []
        choices: list[dict[str, int]] = []
        most = [0] * len(self.loops)
        seen: list[set[bool]] = [set() for _ in self.guard_conditions]
        goals = goals_of(self)
        middle = Goal(min(2, goals[0].tiles), 2)
        wanted: list[tuple[Goal, tuple[int, bool] | None]] = [(g, None) for g in goals]
        wanted += [(middle, (i, side)) for i in range(len(seen)) for side in (True, False)]
        for goal, want in wanted:
            if (want is not None and want[1] in seen[want[0]]) or (goal.spare and found and found[0].tiles and all([n > self.stages + 1 for n in most])):
                continue
            if want is not None and self.trials > TRIALS:
                self.untried += [] if read_guards.apart(self.guard_conditions[want[0]]) else [self.guarded[want[0]]]
                continue
            reached = self._reach(goal, want)
            if reached is None:
                continue
            choice, counts, total = reached
            for sides, side in zip(seen, self.sides_of(choice) if want or all(counts) or len(seen) > read_guards.MANY else (), strict=False):
                sides.add(side)  # which way a branch goes where nothing goes round shows too little
            most = [max(a, b) for a, b in zip(most, counts, strict=True)]
            setting = self.setting(goal, choice, counts, total)
            if (want is not None and (any(counts) or not counts)) or goal.over or not any(s.trips == counts and s.tiles >= setting.tiles and s.mixed == setting.mixed for s in found):
                found.append(setting)
                choices.append(choice)
        self.one_sided = [b for b, cond, sides in zip(self.guarded, self.guard_conditions, seen, strict=True) if True not in sides and read_guards.reads(cond) and not read_guards.counted(cond)]
        return found, choices, most

    def _reach(self, goal: Goal, want: tuple[int, bool] | None = None) -> tuple[dict[str, int], tuple[int, ...], int] | None:
        """Coordinate descent from one tile and one iteration towards the goal, with one guard on the side that is wanted."""
        at = choice = self._begin(goal)
        profiles, places = self.profiles, {name: i for i, name in enumerate(at)}
        best, far, trials = NEVER, bool(self.starts), 0
        near: dict[Profile, float] = {}
        tried: dict[str, tuple[Any, ...]] = {}
        result: tuple[dict[str, int], tuple[int, ...], int] | None = None
        order = list(self.candidates.items()) if want is None else sorted(self.candidates.items(), key=lambda x: not x[0].startswith(LENGTH))
        loose, loose_at = dict[str, float](), dict[str, int]()
        for _ in range(2):
            before = best
            for name, values in [("", [0]), *order]:  # first the start itself: all there is without arguments
                if loose_at is not at:
                    loose, loose_at = {n: uneven(b, at[n], goal.over) for n, b in self.blocks.items()}, at
                others = sum(loose.values()) - loose.get(name, 0.0)
                block, unit = self.blocks.get(name) or (1, 0)
                if others >= best:
                    continue
                even = unit * goal.over % block
                if whole := others + UNEVEN >= best:
                    values = self._whole(name, values, block, even)
                key = tuple(at.values())
                head, tail = (key[: places[name]], key[places[name] + 1 :]) if name else (key, ())
                if tried.get(name) == (head, tail):  # beside the same others none of them was better
                    trials += len(values)
                    continue
                tried[name] = head, tail
                least, here = 0.0, profiles.get(key)
                if name and here and self.lasting is not None and name not in self.lasting:  # no value of this one makes a loop longer or shorter
                    least = off_trips(goal, here[1], far)
                for value in values:
                    penalty = others if whole or value % block == even else others + UNEVEN
                    if penalty >= best:
                        continue
                    trials += 1
                    if least + penalty >= best:
                        continue
                    met = (*head, value, *tail) if name else key
                    got: Any = profiles.get(met, False)  # most are met at several goals
                    if got is False:
                        got = profiles[met] = self._profile({**at, name: value} if name else at)
                    if got is None:
                        continue
                    distance = near.get(got)
                    if distance is None:
                        distance = near[got] = off_tiles(goal, got[0], off_trips(goal, got[1], far))
                    distance += penalty
                    if want is not None and self.sides_of({**at, name: value} if name else at)[want[0]] is not want[1]:
                        distance += 1000
                    if distance < best:
                        trial = {**at, name: value} if name else at
                        best, choice, result = distance, trial, (trial, got[1], got[0])
                        if best < 0.0005:
                            self.trials += trials
                            return result
                at = choice
            if best == before or best < 0.0015:
                break
        self.trials += trials
        return result if want is None or best < 1000 else None

    def _begin(self, goal: Goal) -> dict[str, int]:
        """Where the descent starts: the least candidates, or what was found farther away and is nearer to the goal."""
        first = {n: values[0] for n, values in self.candidates.items()}
        far = [(off_tiles(goal, got[0], off_trips(goal, got[1], True)), i) for i, c in enumerate(self.starts) if (got := self.profile(c)) is not None]
        if not far:
            return first
        near = self.profile(first)
        nearest, i = min(far)
        return self.starts[i] if near is None or nearest < off_tiles(goal, near[0], off_trips(goal, near[1], True)) else first

    def _whole(self, name: str, values: list[int], block: int, even: int) -> list[int]:
        """The values of an argument that are whole numbers of its blocks, or as far above (below) one as is asked for."""
        found = self.wholes.get((name, even))
        if found is None or found[0] is not values:
            found = self.wholes[name, even] = values, [v for v in values if v % block == even]
        return found[1]

    def setting(self, goal: Goal, choice: dict[str, int], counts: tuple[int, ...], total: int, *, last: bool = False) -> Setting:
        """The setting of a choice; of a grid with one CTA a tile the first is walked, or the `last`."""
        env = self.environment(choice)
        args = {p: env[p] for p in self.program.scalars}
        lengths = self.lengths_of(choice, env)
        if goal.mixed:
            patterns = {t: (0, n, 1, n) if t in self.branched else (n, 0, 1, n) for t, (n, *_) in lengths.items()}
            lengths = {t: tuple(read_guards.held(self, t, n, env) for n in pattern) for t, pattern in patterns.items()}
        persistent = self.scheduler is None or self.scheduler.kind != "grid"
        clusters = max(1, total // max(1, goal.tiles)) if persistent else max(1, total)
        return Setting(args, lengths, clusters, clusters - 1 if last and not persistent else 0, -(-total // clusters), counts, goal.mixed)
