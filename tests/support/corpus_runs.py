"""A schedule of the corpus on one case of its task: verified, lowered, simulated and judged against the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import cake_kernels
from cake_backend.judge.check import Reference
from cake_backend.judge.numerics import OutputVerdict
from cake_backend.simulate import simulate
from cake_backend.task import Task, numpy_dtype
from cake_ir import parse, specialise
from cake_ir.program import Program

TEXTS = {(s.family, s.name): s.text for s in cake_kernels.schedules()}


def program(family: str, schedule: str, params: Mapping[str, Any] | None = None) -> Program:
    """The specialised program; it must have no faults."""
    made = specialise(parse(TEXTS[family, schedule], f"{schedule}.py").schedules[0], dict(params or {}), "sm_90a")
    assert made.program is not None, made.faults
    return made.program


def judged(
    family: str, schedule: str, params: Mapping[str, Any], shape: str, distribution: str, *, seed: int = 1, policy: str = "uniform"
) -> dict[str, OutputVerdict]:
    """The verdict on each output after one simulated run, outputs poisoned first; the run itself must be free of faults."""
    task, made = cake_kernels.tasks()[family], program(family, schedule, params)
    case = task.shape(shape)
    assert case in task.specialised(made.tunables), f"{shape} does not fit {dict(params)}"
    data = task.distribution(distribution)
    inputs = task.inputs(case.axes, data, seed)
    arrays = {n: a for n, a in poisoned(task, case.axes, inputs).items() if n in made.tensors}
    scalars = {n: v for n, v in task.scalar_values(case.axes).items() if n in made.scalars}
    run = simulate(made, arrays, scalars, policy=policy, seed=seed)
    assert run.ok, [str(f) for f in run.faults]
    return Reference(task, case.axes, inputs, None).compare(run.outputs, data)


def poisoned(task: Task, axes: Mapping[str, int], inputs: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """All tensors of a case: copies of the inputs, and outputs full of what no answer holds."""
    arrays = {n: a.copy() for n, a in inputs.items()}
    for name, layout in task.layouts(axes).items():
        if name not in arrays:
            dtype = numpy_dtype(task.tensors[name].dtype)
            arrays[name] = np.full(layout.shape, -7 if dtype.kind in "iu" else np.nan).astype(dtype)
    return arrays


def failures(verdicts: Mapping[str, OutputVerdict]) -> dict[str, str]:
    """Reasons of the outputs that are not right."""
    return {n: v.reason for n, v in verdicts.items() if not v.ok}
