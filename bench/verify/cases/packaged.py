"""Every schedule that the package ships, on small shapes of its task: inputs, oracle and tolerances are the task's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import cake_kernels
from bench.verify.cases.case import Case, Filled
from cake_backend.judge.check import Reference
from cake_backend.task import Task, numpy_dtype
from cake_ir import parse, specialise

Array = np.ndarray[Any, Any]


def _no_fill(rng: np.random.Generator, x: Mapping[str, Any]) -> Filled:
    raise NotImplementedError("a packaged case fills its arguments from its task")


@dataclass(frozen=True)
class Packaged(Case):
    """A shipped schedule; `settings` name shapes of the task."""

    family: str = ""
    schedule: str = ""

    @property
    def task(self) -> Task:
        return cake_kernels.tasks()[self.family]

    def text(self) -> str:
        return next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == (self.family, self.schedule))

    def arguments(self, setting: int, seed: int = 0) -> Filled:
        axes = self.task.shape(self.settings[setting]["shape"]).axes
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
    """A case for each shipped schedule, with its default parameters, on the two smallest shapes that fit them."""
    out = {}
    for s in cake_kernels.schedules():
        task = cake_kernels.tasks().get(s.family)
        program = specialise(parse(s.text).schedules[0]).program
        if task is None or program is None:
            continue
        small = [x for x in task.specialised(program.tunables) if x.kind in ("sim", "edge")]
        small.sort(key=lambda x: sum(int(np.prod(layout.shape)) for layout in task.layouts(x.axes).values()), reverse=True)
        if small:
            name = f"{s.family}/{s.name}".replace("/", ".")
            few = {"ctas": program.launch.cluster[0] * program.launch.cluster[1]} if program.launch.grid == "persistent" else {}  # one cluster takes all tiles
            out[name] = Packaged(name, f"{s.name}.py", tuple({"shape": x.name, **few} for x in small[:2]), _no_fill, family=s.family, schedule=s.name, tolerance=8e-3)
    return out
