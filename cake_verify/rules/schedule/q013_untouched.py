"""Q013: every tensor of the signature is loaded or stored by somebody."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.frontend import Template
from cake_ir.program import Program
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="Q013",
    title="a tensor that nothing loads or stores",
    statement="Every tensor parameter that is not `.const` is named by some operation or declaration of the body.",
    why="Who launches the schedule gives the tensor: as an input it cannot change the result, as an output it stays as it was. Nearly always a store has been left out.",
    failing=edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32], Z: LM.gmem1d[LM.f32]")),
    passing=COPY,
    limits="Asked of schedules that store something. A name that stands in the body counts, be it under a compile-time condition that is false for these tunables. A schedule of a plan takes only the tensors that it needs. "
    "A `.const` tensor that nothing loads is a warning (Q003).",
)


def untouched(template: Template, program: Program) -> Iterator[Fault]:
    """The tensors of the signature that the body does not name; one fault each."""
    stored = next((op for op in reversed(program.ops) if op.name in ("store", "tma_store", "bulk_store", "atomic", "tma_reduce") and "tensor" in op.attrs), None)
    if stored is None:  # a draft, or something else is said of it
        return
    named = {n.id for s in template.body for n in ast.walk(s) if isinstance(n, ast.Name)}
    for p in program.tensors.values():
        if not p.const and p.name not in named:
            yield Fault("Q013", f"nothing loads or stores `{p.name}`", p.span, ((stored.span, f"the last store, to `{stored.attrs['tensor']}`"),), f"store the result that belongs to `{p.name}`, or take it out of the signature", (), {"tensor": p.name})
