"""Tensors for which a proxy fence matters in global memory."""

from __future__ import annotations

from functools import lru_cache

from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue, Touch
from cake_ir.program import Program


@lru_cache(maxsize=32)
def stored_and_copied(program: Program) -> frozenset[str]:
    """Tensors that ordinary stores of a launch write and that its copy engine reads or writes: there a proxy fence matters."""
    stored: set[str] = set()
    copied: set[str] = set()
    for op in program.ops:
        for e in effects_of(op, program):
            for t in e.touches if isinstance(e, Issue) else (e,):
                if isinstance(t, Touch) and t.space == "gmem":
                    if isinstance(e, Issue) and e.engine in ("tma", "bulk"):
                        copied.add(str(op.attrs[t.operand]))
                    elif "w" in t.mode and not isinstance(e, Issue):
                        stored.add(str(op.attrs[t.operand]))
    return frozenset(stored & copied)
