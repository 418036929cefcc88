"""Every schedule that the package ships, on small shapes of its task: inputs, oracle and tolerances are the task's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import cake_kernels
from bench.verify.cases.case import Case, Filled
from cake_backend.judge.check import Reference
from cake_backend.task import Task, numpy_dtype
from cake_ir import parse, specialise
from cake_ir.program import Assign, Expr, For, If, Program, Stmt
from cake_verify.analyses import trips
from cake_verify.analyses.tape import evaluate

Array = np.ndarray[Any, Any]


def _no_fill(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    raise NotImplementedError("a packaged case fills its arguments from its task")


@dataclass(frozen=True)
class Packaged(Case):
    """A shipped schedule; `settings` hold extents of the task's axes."""

    family: str = ""
    schedule: str = ""

    @property
    def task(self) -> Task:
        return cake_kernels.tasks()[self.family]

    def text(self) -> str:
        return next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == (self.family, self.schedule))

    def arguments(self, setting: int, seed: int = 0) -> Filled:
        axes = self.settings[setting]["axes"]
        inputs = self.task.inputs(axes, self.task.distribution("normal"), seed + setting)
        program = specialise(parse(self.text()).schedules[0], self.params, self.target).program
        assert program is not None
        arrays: dict[str, Array] = {n: a.copy() for n, a in inputs.items() if n in program.tensors}
        for name, layout in self.task.layouts(axes).items():
            if name in program.tensors and name not in arrays:
                dtype = numpy_dtype(self.task.tensors[name].dtype)
                arrays[name] = np.full(layout.shape, -7 if dtype.kind in "iu" else np.nan).astype(dtype)
        scalars = {n: v for n, v in self.task.scalar_values(axes).items() if n in program.scalars}
        return Filled(arrays, scalars, {"": (axes, inputs)})

    def outputs(self) -> dict[str, str]:
        return {n: f"an output of task `{self.family}`" for n, t in self.task.tensors.items() if t.mode != "in" and not t.optional}

    def wrong(self, outputs: Mapping[str, Any], filled: Filled) -> str:
        axes, inputs = filled.expected[""]
        found = Reference(self.task, axes, inputs, None).compare(outputs, self.task.distribution("normal"))
        return "; ".join(f"{n}: {v.reason}" for n, v in found.items() if not v.ok)


def packaged() -> dict[str, Packaged]:
    """A case for each shipped schedule, with its default parameters, on the two largest small shapes that it takes, and on one that is long
    enough for its CTA to come back to the slots of every ring."""
    out = {}
    for s in cake_kernels.schedules():
        task = cake_kernels.tasks().get(s.family)
        program = specialise(parse(s.text).schedules[0]).program
        if task is None or program is None:
            continue
        small = [x.axes for x in task.specialised(program.tunables) if x.kind in ("sim", "edge") and _legal(task, program, x.axes)]
        small.sort(key=lambda axes: _elements(task, axes), reverse=True)
        if not small:
            continue
        chosen = small[:2]
        if program.launch.grid == "persistent" and (more := _wrapping(task, program, small)) is not None:
            chosen = [more, *chosen[-1:]]
        name = f"{s.family}/{s.name}".replace("/", ".")
        few = {"ctas": program.launch.cluster[0] * program.launch.cluster[1]} if program.launch.grid == "persistent" else {}  # one cluster takes all tiles
        out[name] = Packaged(name, f"{s.name}.py", tuple({"axes": axes, **few} for axes in chosen), _no_fill, family=s.family, schedule=s.name, tolerance=8e-3)
    return out


def _elements(task: Task, axes: Mapping[str, int]) -> int:
    return sum(int(np.prod(layout.shape)) for layout in task.layouts(axes).values())


def _scalars(task: Task, program: Program, axes: Mapping[str, int]) -> dict[str, Any]:
    return {n: v for n, v in task.scalar_values(axes).items() if n in program.scalars}


def _legal(task: Task, program: Program, axes: Mapping[str, int]) -> bool:
    """Whether the arguments of a shape keep what the schedule assumes; the launcher refuses others."""
    given = _scalars(task, program, axes)
    return all(evaluate(program, a.cond, given) is not False for a in program.assumes)


def _wrapping(task: Task, program: Program, small: list[dict[str, int]]) -> dict[str, int] | None:
    """The smallest shape grown along one axis until one cluster comes back twice to every slot of the rings that only tiles step;
    None where a shape of the task does already."""
    wanted = _tiles_to_wrap(program)
    if not wanted or any(_tiles(task, program, axes) >= wanted for axes in small[:2]):
        return None
    grown = []
    for base in small:
        for axis, extent in base.items():
            for times in range(2, 40):
                axes = {**base, axis: extent * times}
                if axis not in program.tunables and _legal(task, program, axes) and _tiles(task, program, axes) >= wanted:
                    grown.append(axes)
                    break
    return min(grown, key=lambda axes: _elements(task, axes), default=None)


def _tiles(task: Task, program: Program, axes: Mapping[str, int]) -> int:
    """Cluster tiles of the first scheduler."""
    scheduler = next(iter(program.schedulers.values()))
    counts = trips.tile_counts(program, scheduler.name)(_scalars(task, program, axes))
    return int(np.prod([-(-n // c) for n, c in zip(counts, (*scheduler.cluster, *([1] * len(counts))), strict=False)]))


def _tiles_to_wrap(program: Program) -> int:
    """Tiles after which every ring that loops of run-time length do not step has been round twice."""
    rounds: dict[str, list[int | None]] = {}
    for block in program.body:
        for ring, n in _steps(block.body, 1):
            rounds.setdefault(ring, []).append(n)
    known = {ring: max(n for n in found if n is not None) for ring, found in rounds.items() if None not in found}
    return max((-(-(2 * program.rings[ring].stages + 1) // n) for ring, n in known.items() if n), default=0)


def _steps(body: Sequence[Stmt], times: int | None) -> Iterator[tuple[str, int | None]]:
    """Each statement that steps a ring, with how often it runs a tile; None where only the arguments say."""
    for s in body:
        if isinstance(s, For):
            n = 1 if s.kind == "tiles" else _rounds(s)
            yield from _steps(s.body, None if n is None or times is None else n * times)
        elif isinstance(s, If):
            yield from _steps((*s.then, *s.orelse), times)
        elif isinstance(s, Assign) and isinstance(s.value, Expr) and s.value.op == "step":
            yield str(s.value.attrs["ring"]), times


def _rounds(loop: For) -> int | None:
    """Rounds of a loop of constant length."""
    if loop.lo is None or loop.hi is None or loop.lo.op != "const" or loop.hi.op != "const":
        return None
    return max(0, int(loop.hi.attrs["value"]) - int(loop.lo.attrs["value"]))  # type: ignore[call-overload]  # bounds are integers
