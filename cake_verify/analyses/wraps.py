"""Rings that no run came round: whether their slots can be used again at all, for any arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from cake_ir.fault import Fault
from cake_ir.program import For, Program
from cake_ir.types import SlotT
from cake_verify.analyses import ranges
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.sites import Binding, sites
from cake_verify.analyses.state import Cta


def came_round(plan: Plan, ctas: Iterable[Cta], before: set[str]) -> set[str]:
    """Rings of which one run has used a slot twice, without those of which one `before` has."""
    asked = [(i, ring) for i, name in enumerate(plan.names) if (ring := plan.program.barriers[name].pipeline) not in before]
    return {ring for cta in ctas for i, ring in asked if any([bar.n > 1 for bar in cta.bars[i]])} if asked else set()


def never_round(program: Program, round_: set[str], covered: Callable[[For], tuple[int, ...]]) -> list[Fault]:
    """What is open of rings that never came round, though arguments may take a role further than their slots.

    `covered` gives the iterations that the runs had of a loop.
    """
    rings = {b.pipeline for b in program.barriers.values()} - round_
    out = []
    for ring in sorted(rings):
        stages = program.rings[ring].stages
        for role in program.roles:
            steps = [b for (owner, _), found in sites(program).bindings.items() if owner == role for b in found if _steps(b, ring)]
            if sum(_most(program, b) for b in steps) > stages and not all(_fixed(program, b) for b in steps):
                last = max(steps, key=lambda b: _most(program, b))
                loop = next((s for s in reversed(last.path) if isinstance(s, For)), None)
                out.append(Fault(
                    "S090", f"not decided: no arguments tried take `{role}` round `{ring}`, whose {stages} slots are used once in every run",
                    loop.head if loop is not None else last.value.span, severity="note", facts={"ring": ring, "role": role},
                    help=f"{said(covered(loop)) if loop is not None else ''}state what is known about the arguments with `lm.assume(..)`",
                ))  # fmt: skip
                break
    return out[:1]


def said(trips: tuple[int, ...]) -> str:
    """The iterations that were covered, in words."""
    text = " and ".join(filter(None, (", ".join(map(str, trips[:-1])), *map(str, trips[-1:]))))
    return f"the runs had {text} iteration{'s' if trips != (1,) else ''}; " if text else ""


def _steps(b: Binding, ring: str) -> bool:
    return b.value.op == "step" and isinstance(b.value.type, SlotT) and b.value.type.ring == ring


def _fixed(program: Program, b: Binding) -> bool:
    """Whether no argument decides how often one CTA makes a step: then the runs have made as many as there are."""
    for s in b.path:
        if not isinstance(s, For):
            return False
        if s.lo is None or s.hi is None:
            if program.schedulers[str(s.scheduler)].kind != "grid":
                return False
        elif ranges.of(program, b.role.name, s.hi).exact is None or ranges.of(program, b.role.name, s.lo).exact is None:
            return False
    return True


def _most(program: Program, b: Binding) -> float:
    """Steps of one CTA that a binding makes at most."""
    total = 1.0
    for loop in b.path:
        if not isinstance(loop, For):
            continue
        if loop.lo is None or loop.hi is None:
            d = program.schedulers[str(loop.scheduler)]
            total *= 1 if d.kind == "grid" else math.prod(ranges.of(program, None, e).hi for e in d.tiles) if d.kind != "grouped" else math.inf
        else:
            most = ranges.of(program, b.role.name, loop.hi).hi - ranges.of(program, b.role.name, loop.lo).lo
            total *= max(0.0, most)
    return total


__all__ = ["came_round", "never_round", "said"]
