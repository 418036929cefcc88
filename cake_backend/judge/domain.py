"""Which shapes of a task a candidate takes: what its own assumptions say, asked before anything runs.

A shape outside is no fault. It is listed in the record, with the assumption and its line, and the candidate is judged on the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cake_backend.binding import BindError, OutsideDomain, bind, unmet
from cake_backend.judge.routine import Rewriter, Routine
from cake_backend.manifest import DTYPE_BYTES, Guard, Manifest
from cake_backend.task import Shape, Task

if TYPE_CHECKING:
    from cake_ir.program import Program


@dataclass(frozen=True, slots=True)
class Outside:
    """A shape that the candidate says it is not for: the assumption that does not hold, and its line in the schedule."""

    shape: Shape
    reason: str
    line: int | None

    def sentence(self) -> str:
        """For a summary: the assumption after its line."""
        return (f"line {self.line}: " if self.line else "") + self.reason

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {"shape": self.shape.name, "axes": dict(self.shape.axes), "kind": self.shape.kind, "reason": self.reason, "line": self.line}


@dataclass(frozen=True, slots=True)
class Domain:
    """The shapes that a candidate's guards let pass. `manifest` is None where nothing was lowered; `guards` are asked then."""

    task: Task
    manifest: Manifest | None = None
    guards: tuple[Guard, ...] = field(default=())

    def outside(self, shape: Shape) -> Outside | None:
        """Why the candidate does not take a shape; None where it does, or where something else than a guard keeps it from being bound."""
        layouts, values = self.task.layouts(shape.axes), self.task.scalar_values(shape.axes)
        if self.manifest is not None:
            try:
                bind(self.manifest, layouts, values)
            except OutsideDomain as error:
                return Outside(shape, str(error), error.line)
            except BindError:
                return None
            return None
        for guard in self.guards:
            try:
                told = unmet(guard, values, layouts)
            except BindError:  # it speaks of a workspace, whose extents nobody knows without a manifest
                continue
            if told is not None:
                return Outside(shape, told, guard.line)
        return None

    def covers(self, shape: Shape) -> bool:
        """Whether no guard keeps the shape out."""
        return self.outside(shape) is None

    def excluded(self, shapes: Sequence[Shape]) -> list[Outside]:
        """Those of the shapes that are outside, in order."""
        return [found for shape in shapes if (found := self.outside(shape)) is not None]


def assumptions(routine: Routine) -> tuple[Guard, ...]:
    """What a routine that was not lowered says about its arguments: declared extents, rows that a tensor map can take, assumptions."""
    out: list[Guard] = []
    for call in routine.calls:
        change = Rewriter(call.tensors, call.scalars)
        out += [replace(guard, expr=change.text(guard.expr)) for guard in _of_program(call.program)]
    return tuple(dict.fromkeys(out))


def _of_program(program: Program) -> list[Guard]:
    from cake_backend.cuda.launch_manifest import dtype_of
    from cake_backend.cuda.manifest_text import host_text, stripped
    from cake_ir.fault import FaultError

    out = [
        Guard(f"extent({name}, {dim}) == {extent}", f"`{name}` has extent {extent} along dimension {dim}", p.span.line)
        for name, p in program.tensors.items()
        for dim, extent in enumerate(p.extents)
    ]
    for name, p in program.tensors.items():
        step = 16 // DTYPE_BYTES[dtype_of(program, name)]
        if p.kind == "tma" and step > 1:
            message = f"rows of `{name}` start on multiples of 16 bytes"
            out += [Guard(f"stride({name}, {dim}) % {step} == 0", message, p.span.line) for dim in range(p.rank - 1)]
    for assume in program.assumes:
        try:
            text = stripped(host_text(program, assume.cond))
        except FaultError:  # an assumption that the launcher cannot evaluate excludes no shape
            continue
        out.append(Guard(text, f"the schedule assumes {text}", assume.span.line))
    return out


def describe(domain: Domain, taken: Sequence[Shape], params: Mapping[str, Any]) -> dict[str, Any]:
    """The record's section: `kind` is `whole`, `specialised` (parameters fix axes) or `partial` (assumptions leave shapes out).

    `taken` are the shapes that the parameters leave; of those, `covered` are judged and `outside` are not.
    """
    excluded = domain.excluded(taken)
    gone = {found.shape.name for found in excluded}
    names = {shape.name for shape in taken}
    other = [shape.name for shape in domain.task.shapes if shape.name not in names]
    fixed = {a: v for a, v in params.items() if a in domain.task.axes and a not in domain.task.scalars}
    return {
        "kind": "partial" if excluded else "specialised" if other else "whole",
        "covered": [shape.name for shape in taken if shape.name not in gone],
        "outside": [found.to_json() for found in excluded],
        "timed": sum(shape.kind == "bench" and shape.name not in gone for shape in taken),
        "fixed_axes": fixed,
        "other_shapes": other,
    }


def suffix(section: Mapping[str, Any], timed: bool) -> str:
    """What a summary adds about shapes that were left out (`section` as `describe` gives it); empty where there are none."""
    outside = section.get("outside") or ()
    if not outside:
        return ""
    names = ", ".join(f"`{o['shape']}`" for o in outside[:4]) + (f" and {len(outside) - 4} more" if len(outside) > 4 else "")
    first = outside[0]
    where = f"line {first['line']}: " if first["line"] else ""
    lost = timed and section["timed"] == 0 and any(o["kind"] == "bench" for o in outside)
    return f"; outside its domain: {names} ({where}{first['reason']}){'; it takes no timed shape' if lost else ''}"
