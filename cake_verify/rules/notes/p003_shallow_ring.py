"""P003: a ring of one slot cannot overlap copies with work."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import For, Program
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="P003",
    title="a shallow ring",
    statement="A ring that a loop fills and another role empties has two slots or more.",
    why="With one slot the producer waits for the consumer and the consumer for the producer: nothing overlaps. Between two and four slots a large GEMM still gains about half again.",
    failing=edit(LOOP, ("ring = lm.pipeline(stages=2)", "ring = lm.pipeline(stages=1)")),
    passing=LOOP,
    limits="Noted for innermost loops only; a resident operand may well ride a ring of one slot.",
    severity="note",
)


def check(program: Program) -> Iterator[Fault]:
    for ring in program.rings.values():
        if ring.stages > 1:
            continue
        filled = {b.name for b in program.barriers.values() if b.pipeline == ring.name and b.arrive in ("tx", "cp_async")}
        emptied = any(b.pipeline == ring.name and b.primed for b in program.barriers.values())
        for s in sites(program).ops:
            inner = s.loops[-1] if s.loops else None
            if emptied and s.op.name == "tma_load" and s.op.attrs.get("barrier") in filled and isinstance(inner, For) and inner.kind == "range":
                yield Fault("P003", f"`{ring.name}` has one slot: its copies wait for the work on the slot before", ring.span, ((s.op.span, "filled in this loop"),),
                            "take two stages or more, as shared memory allows", (), {"stages": 1}, severity="note")  # fmt: skip
                break
