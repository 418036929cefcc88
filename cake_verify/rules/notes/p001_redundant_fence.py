"""P001: a proxy fence with nothing to fence."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.acting import acting
from cake_ir.derive.global_fences import stored_and_copied
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.ops import effects_of
from cake_ir.ops.effects import FenceProxy, Issue, Touch
from cake_ir.program import Program
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="P001",
    title="a redundant proxy fence",
    statement="`lm.fence_proxy()` orders this thread's own ordinary writes to shared memory before later reads by the copy engine or the tensor core; without such a write it does nothing.",
    why="Data that a TMA load brought is in the async proxy already, and the wait on its barrier orders it. The fence costs issue slots in the hot loop.",
    failing=edit(TILE, ("        lm.mma(acc, a, b, init=True)", "        lm.fence_proxy()\n        lm.mma(acc, a, b, init=True)")),
    passing=TILE,
    limits="Noted where the role writes no shared memory at all, and no tensor that the copy engine touches in the same launch.",
    sources=("HW070", "HW071"),
    severity="note",
)


def check(program: Program) -> Iterator[Fault]:
    doers = acting(program)
    fences = doers.get(FenceProxy, ())
    fencing = {s.role for s in fences}
    for role in (r for r in program.roles if r in fencing):
        effects = [(s, e) for kind in (Touch, Issue) for s in doers.get(kind, ()) if s.role == role for e in effects_of(s.op, program)]
        if any(_writes(e) or (isinstance(e, Touch) and s.op.attrs.get("tensor") in stored_and_copied(program)) for s, e in effects):
            continue
        for s in fences:
            if s.role == role:
                yield Fault("P001", f"this fence is redundant: `{role}` writes no shared memory itself", s.op.span, (), "what a barrier completed needs no fence",
                            (Fix((Edit(s.op.span, "pass"),), "certain", "remove the fence"),), {"role": role}, severity="note")  # fmt: skip


def _writes(e: object) -> bool:
    """Whether an effect writes shared memory through the generic proxy."""
    if isinstance(e, Touch):
        return e.space == "smem" and e.proxy == "generic" and "w" in e.mode
    return isinstance(e, Issue) and any(_writes(t) for t in e.touches)
