"""The operations of Cake IR: every spec, found by (receiver, name).

Add an operation by adding its `OpSpec` to the `SPECS` of its family's file; nothing else here changes.
"""

from __future__ import annotations

from cake_ir.ops import atomic, elementwise, fragments, mma, move, reduce, scales, sync, tmem
from cake_ir.ops.effects import Effect
from cake_ir.ops.spec import OpSpec
from cake_ir.program import Op, Program

FAMILIES = (sync, move, atomic, scales, mma, tmem, elementwise, reduce, fragments)

SPECS: dict[tuple[str, str], OpSpec] = {}
for _family in FAMILIES:
    for _spec in _family.SPECS:
        if (_spec.on, _spec.name) in SPECS:
            raise ImportError(f"operation {_spec.spelling} is declared twice")
        SPECS[(_spec.on, _spec.name)] = _spec

OF_VIEWS = tuple(sorted({spec.name for spec in SPECS.values() if spec.views}))
"""The operations that take a view, by name."""

COMPUTE = OpSpec("compute", "elementwise", (), doc="Evaluate a pure expression into the places on the left.")


def spec_of(op: Op) -> OpSpec:
    """The spec of an operation of a program."""
    if op.name == "compute":
        return COMPUTE
    return SPECS[("view" if "view" in op.operands and ("view", op.name) in SPECS else "lm", op.name)]


def taking(*params: str) -> tuple[str, ...]:
    """The operations that have one of these parameters, by name: what a rule about such a parameter need look at."""
    return tuple(sorted({spec.name for spec in SPECS.values() if not set(params).isdisjoint(spec.order)}))


def effects_of(op: Op, program: Program) -> tuple[Effect, ...]:
    """The effects of an operation, in order; register traffic of `compute` follows from its expression. Kept with the program."""
    found = program.facts.get(op)
    if found is None:
        found = program.facts[op] = spec_of(op).effects(op, program)
    return found  # type: ignore[return-value]  # under an operation lie its effects
