"""Which global tensors a schedule reads and writes."""

from __future__ import annotations

from cake_ir.fact import fact
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Flag, Issue, Touch
from cake_ir.program import Program


@fact
def _touched(program: Program) -> tuple[frozenset[str], frozenset[str]]:
    read: set[str] = set()
    written: set[str] = set()
    for op in program.ops:
        for effect in effects_of(op, program):
            if isinstance(effect, Flag):
                (written if effect.kind == "signal" else read).add(str(op.attrs.get("flags")))
            for touch in effect.touches if isinstance(effect, Issue) else (effect,):
                if isinstance(touch, Touch) and touch.space == "gmem":
                    name = str(op.attrs.get(touch.operand))
                    if "r" in touch.mode:
                        read.add(name)
                    if "w" in touch.mode:
                        written.add(name)
    for d in program.schedulers.values():
        read |= {x for x in (d.offsets, d.counter) if x is not None}
        written |= {d.counter} if d.counter is not None else set()
    return frozenset(read), frozenset(written)


def read_tensors(program: Program) -> frozenset[str]:
    """Names of tensors that some operation reads; an update in place counts."""
    return _touched(program)[0]


def written_tensors(program: Program) -> frozenset[str]:
    """Names of tensors that some operation writes."""
    return _touched(program)[1]


def writes_before_reading(program: Program, tensor: str) -> bool:
    """Whether the first operation of the text that touches a tensor only writes it: what is read later is the launch's own."""
    for op in program.ops:
        for effect in effects_of(op, program):
            for touch in effect.touches if isinstance(effect, Issue) else (effect,):
                if isinstance(touch, Touch) and touch.space == "gmem" and str(op.attrs.get(touch.operand)) == tensor:
                    return "r" not in touch.mode
    return False
