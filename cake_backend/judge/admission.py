"""Before a task may judge anybody: would it accept a trivial answer, or refuse an honest one?

A battery of null answers (zeros, constants, the answer to other data, rows in the wrong place, a dropped tail) must be refused on
every distribution of every ordinary shape, and the oracle's own answer, rounded to the output types, must be accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake_backend.judge.check import Reference
from cake_backend.task import Axes, Shape, Task, numpy_dtype

Array = np.ndarray[Any, Any]
Outputs = dict[str, Array]
LEAST_ROWS = 4


@dataclass(frozen=True, slots=True)
class Admission:
    """The result for one task: `faults` are sentences; a task with any must not be used. `trials` counts the answers tried."""

    task: str
    faults: tuple[str, ...]
    trials: int

    @property
    def ok(self) -> bool:
        return not self.faults


def admit(task: Task, *, seed: int = 0, shapes: tuple[Shape, ...] | None = None) -> Admission:
    """Run the battery on the task's `sim` shapes (or the given ones)."""
    faults: list[str] = []
    trials = 0
    chosen = shapes if shapes is not None else tuple(s for s in task.shapes if s.kind == "sim") or task.shapes[:1]
    for shape in chosen:
        for distribution in task.distributions:
            where = f"shape `{shape.name}`, data `{distribution.name}`"
            inputs = task.inputs(shape.axes, distribution, seed)
            reference = Reference(task, shape.axes, inputs, None)
            honest = as_outputs(task, shape.axes, reference.values)
            trials += 1
            for name, verdict in reference.compare(honest, distribution).items():
                if not verdict.ok:
                    faults.append(f"{where}: the oracle's own answer is refused as `{name}` ({verdict.reason})")
            other = task.oracle(task.inputs(shape.axes, distribution, seed + 1), shape.axes, None)
            for null, outputs in null_answers(honest, as_outputs(task, shape.axes, other)):
                trials += 1
                if all(v.ok for v in reference.compare(outputs, distribution).values()):
                    faults.append(f"{where}: {null} would pass")
    return Admission(task.name, tuple(faults), trials)


def as_outputs(task: Task, axes: Axes, values: dict[str, Array]) -> Outputs:
    """The oracle's values as a perfect kernel would store them: rounded once to the output types, in the output shapes."""
    layouts = task.layouts(axes)
    out = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for name, tensor in task.tensors.items():
            if tensor.mode != "in":
                out[name] = np.asarray(values[name]).reshape(layouts[name].shape).astype(numpy_dtype(tensor.dtype))
    return out


def null_answers(honest: Outputs, other: Outputs) -> Iterator[tuple[str, Outputs]]:
    """Answers that need no work or the wrong work.

    Answers that are wrong only for ordered data (shifted, cut, negated) are left out where they equal the honest one bit for bit;
    a constant that equals it stays, for it shows that the task needs no work.
    """
    changes: list[tuple[str, bool, Callable[[str, Array], Array]]] = [
        ("all zeros", True, lambda n, a: np.zeros_like(a)),
        ("all ones", True, lambda n, a: np.ones_like(a)),
        ("a constant of the right mean", True, lambda n, a: np.full_like(a, _mean(a))),
        ("the answer to other data", True, lambda n, a: other[n]),
        ("the rows shifted by one", False, lambda n, a: np.roll(a, 1, axis=_row_axis(a))),
        ("the last rows not written", False, lambda n, a: _cut(a)),
        ("the negated answer", False, lambda n, a: -a if a.dtype.kind != "u" else a + 1),
    ]
    if any(a.shape[_row_axis(a)] < LEAST_ROWS for a in honest.values()):
        return
    for label, always, change in changes:
        with np.errstate(over="ignore", invalid="ignore"):
            made = {name: change(name, array).astype(array.dtype) for name, array in honest.items()}
        if always or any(made[n].tobytes() != honest[n].tobytes() for n in honest):
            yield label, made


def _row_axis(array: Array) -> int:
    """The first dimension with more than one index: batches of one are no rows."""
    return next((d for d, n in enumerate(array.shape) if n > 1), 0)


def _mean(array: Array) -> Any:
    values = array.astype(np.float64)
    finite = values[np.isfinite(values)]
    return finite.mean() if finite.size else 0.0


def _cut(array: Array) -> Array:
    """The array with its last eighth of rows (at least one) set to zero, as a kernel leaves it that drops a tail."""
    out = array.copy()
    axis = _row_axis(out)
    view = np.moveaxis(out, axis, 0)
    view[len(view) - max(1, len(view) // 8) :] = np.zeros((), out.dtype)
    return out
