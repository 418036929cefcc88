"""The task's verdict on one run: every output of one case against the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from cake_backend.expressions import evaluate_int
from cake_backend.judge.numerics import OutputVerdict, compare_argmin, compare_close, compare_exact
from cake_backend.task import Axes, Distribution, Task

Array = np.ndarray[Any, Any]

FULL_WORK = 4e9  # flops up to which the oracle computes every row ..
FULL_ELEMENTS = 2**22  # .. if the outputs have at most so many elements
SAMPLED_ROWS = 256
BLOCK = 64


def sample_rows(task: Task, axes: Axes, rng: np.random.Generator, count: int = SAMPLED_ROWS) -> Array | None:
    """Rows to check at a shape, sorted, or None for all: first, last, one contiguous block (so that a wrong tile shows), random ones."""
    total = task.rows(axes)
    layouts = task.layouts(axes)
    elements = sum(prod(layouts[n].shape) for n, t in task.tensors.items() if t.mode != "in")
    if total <= count or (task.work(axes)["flops"] <= FULL_WORK and elements <= FULL_ELEMENTS):
        return None
    start = int(rng.integers(0, max(1, total - BLOCK)))
    chosen = {0, total - 1, *range(start, min(total, start + BLOCK))}
    chosen |= set(rng.choice(total, min(total, count), replace=False).tolist()[: max(0, count - len(chosen))])
    return np.array(sorted(chosen))


class Reference:
    """The oracle's answer for one case, computed once and compared with as many runs as there are."""

    def __init__(self, task: Task, axes: Axes, inputs: Mapping[str, Array], rows: Array | None) -> None:
        self.task, self.axes, self.inputs, self.rows = task, axes, inputs, rows
        self.values = task.oracle(inputs, axes, rows)
        self.numbers = np.arange(task.rows(axes)) if rows is None else rows
        for name, tensor in task.tensors.items():
            if tensor.mode != "in" and name not in self.values:
                raise ValueError(f"the oracle of task `{task.name}` gives no `{name}`")

    def compare(self, outputs: Mapping[str, Array], distribution: Distribution, *, picked: bool = False) -> dict[str, OutputVerdict]:
        """Verdicts by output name. `outputs` holds full arrays in their own dtypes, or the rows to check alone if `picked`; optional ones may be missing."""
        verdicts = {}
        for name, tensor in self.task.tensors.items():
            if tensor.mode == "in" or (tensor.optional and name not in outputs):
                continue
            verdicts[name] = self._one(name, outputs[name] if picked else self._picked(outputs[name]), distribution)
        return verdicts

    def _picked(self, output: Array) -> Array:
        lead = self.task.row_dims
        flat = output.reshape(prod(output.shape[:lead]), prod(output.shape[lead:]))
        return flat if self.rows is None else flat[self.rows]

    def _one(self, name: str, out: Array, distribution: Distribution) -> OutputVerdict:
        tolerance, ref = self.task.tolerances[name], self.values[name]
        scale = self.values.get(f"{name}.scale")
        if tolerance.compare == "exact":
            return compare_exact(out, ref.reshape(out.shape), tolerance, rows=self.numbers)
        if tolerance.compare == "close":
            return compare_close(out, ref.reshape(out.shape), tolerance, scale=scale, rows=self.numbers)
        limit = evaluate_int(self.task.index_limit[name], self.axes)
        chosen = out.reshape(-1).astype(np.int64)
        inside = (chosen >= 0) & (chosen < limit)
        witness = self.task.witness[name]
        at = self.numbers
        best = witness(self.inputs, self.axes, at, np.asarray(ref).reshape(-1).astype(np.int64))
        reached = witness(self.inputs, self.axes, at, np.where(inside, chosen, 0))
        with np.errstate(invalid="ignore"):
            gap = np.where(inside, reached - best, np.nan)
        magnitude = np.ones(len(chosen)) if scale is None else np.asarray(scale).reshape(-1)
        return compare_argmin(
            out, ref, gap, best, tolerance, limit=limit, scale=magnitude, exact=distribution.exact, rows=self.numbers
        )

