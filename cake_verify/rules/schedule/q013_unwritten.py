"""Q013: what a request asks for as an output is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue, Touch
from cake_ir.program import Program
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE

PAGE = Page(
    code="Q013",
    title="an output that nothing writes",
    statement="Every tensor that a request names as an output, as a task does, is written by some operation.",
    why="It stays as it was before the launch: a store has been left out.",
    failing=TILE,
    passing=TILE,
    limits="Outputs come with the request, or from its task; a tensor that nothing names is otherwise a warning (Q003). Said where nothing else is wrong, of texts with one schedule and no plan.",
)


def check_outputs(program: Program, outputs: Mapping[str, str]) -> Iterator[Fault]:
    """The tensors of the schedule among `outputs` (with what each is, in words) that no operation writes."""
    written: set[str] = set()
    for op in program.ops:
        for e in effects_of(op, program):
            touches = e.touches if isinstance(e, Issue) else (e,) if isinstance(e, Touch) else ()
            if any(t.space == "gmem" and "w" in t.mode for t in touches):
                written.add(str(op.attrs.get("tensor")))
    stored = next((op for op in reversed(program.ops) if op.attrs.get("tensor") in written and op.name in ("store", "tma_store", "bulk_store", "atomic", "tma_reduce")), None)
    related = ((stored.span, f"the last store, to `{stored.attrs['tensor']}`"),) if stored is not None else ()
    for name, what in outputs.items():
        if name in program.tensors and name not in written:
            yield Fault("Q013", f"nothing writes `{name}`, {what}", program.tensors[name].span, related, "store it", (), {"tensor": name})
