"""Barriers on which stores from peer CTAs complete: the bytes of a phase, and which wait announces those of the next one.

The receiving CTA expects whole views, whoever sends their parts. The first phase of each slot is announced where the barriers are
initialised, every other by one thread behind the wait for the one before it.
"""

from __future__ import annotations

from cake_ir.derive.acting import acting
from cake_ir.derive.structure import Site, sites
from cake_ir.dtypes import DTYPES
from cake_ir.fact import fact
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue, Wait
from cake_ir.program import Expr, Program
from cake_ir.record import record
from cake_ir.types import ViewT


@record(eq=False)
class SendBarrier:
    """`bytes` a phase, of all views that are sent on the barrier; `sends` and `waits` in text order."""

    barrier: str
    bytes: int
    sends: tuple[Site, ...]
    waits: tuple[Site, ...]


def is_send(site: Site, program: Program) -> bool:
    """Whether the operation writes to a peer CTA's shared memory, completing by bytes there."""
    return any(isinstance(e, Issue) and e.engine == "st_async" for e in effects_of(site.op, program))


@fact
def send_barriers(program: Program) -> dict[str, SendBarrier]:
    """Every barrier on which sends complete, by name."""
    found: dict[str, list[Site]] = {}
    for site in acting(program).get(Issue, ()):
        if is_send(site, program):
            found.setdefault(str(site.op.attrs["barrier"]), []).append(site)
    out = {}
    for name, sends in found.items():
        views = {e.type.view for s in sends if isinstance(e := s.op.operands["view"], Expr) and isinstance(e.type, ViewT)}
        waits = [s for s in sites(program) if s.op.attrs.get("barrier") == name and any(isinstance(e, Wait) for e in effects_of(s.op, program))]
        out[name] = SendBarrier(name, sum(_bytes(program, v) for v in views), tuple(sends), tuple(waits))
    return out


def _bytes(program: Program, view: str) -> int:
    v = program.views[view]
    n = DTYPES[v.dtype].bits // 8
    for extent in v.shape:
        n *= extent
    return n
