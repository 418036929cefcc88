"""Stores into a peer CTA's shared memory as the machine executes them, and the announcements of the bytes that they bring."""

from __future__ import annotations

from typing import Any

from cake_ir.derive.sends import SendBarrier
from cake_ir.dtypes import DTYPES
from cake_ir.program import Op
from cake_verify.analyses.plan import Plan, Step, view_type
from cake_verify.analyses.state import Bar, Found, Member, complete, credit, open_epoch

Values = tuple[Any, ...]


def send(plan: Plan, op: Op, role: str) -> Step:
    """All lanes of the member write slots of another CTA, and pay into its barrier."""
    share = plan.share(op, role)
    b, stages = share.barrier, share.stages
    t = view_type(op, "view")
    index = plan.code.ops[op.id].index
    at, slot, cta, number = index["view"], index.get("stage"), index["cta"], op.id
    atoms = plan.lookup(op, "view")
    share_bytes = t.rows * t.cols * DTYPES[t.dtype].bits // 8

    def step(m: Member, v: Values) -> Any:
        n, w = 0 if slot is None else v[slot], m.world
        if n < 0:
            raise Found("S031", slot=n)
        if not 0 <= v[cta] < len(w.ctas):
            raise Found("S038", cta=m.cta, rank=v[cta], ranks=len(w.ctas))
        c = w.ctas[v[cta]]
        bar = c.bars[b][n % stages]
        known = m.K | m.E
        if bar.token & ~known:
            credit(bar, known)
        bit = bar.cb
        if not bit:
            bit = bar.cb = m.clock.bit()
        bar.loaded |= 1 << bar.n
        W, R, G, by, unknown = c.W, c.R, c.G, c.O, ~m.K
        for a in atoms[v[at]]:
            if (W[a] | R[a]) & unknown:  # what another send of this phase brings comes in any order
                raise Found("S003", cta=c, atom=a, missing=(W[a] | R[a]) & unknown)
            if R[a]:
                w.used.add(by[a])
                R[a] = 0
            W[a] = G[a] = bit
            by[a] = number
            c.Y[a] = None
        bar.ak |= known
        bar.tx -= share_bytes
        if not bar.pend and bar.tx < 0:
            raise Found("S018", bar=bar, phase=bar.n)
        if not bar.pend and not bar.tx:
            complete(bar, m.clock)
        w.wrote.add(number)
        return None

    return step


def announce(m: Member, bar: Bar, sends: SendBarrier) -> None:
    """One thread of the receiver expects the bytes of the next phase."""
    if bar.pend < 1:
        raise Found("S022", bar=bar, phase=bar.n, units=1)
    if bar.token & ~(m.K | m.E):
        credit(bar, m.K | m.E)
    bit = m.cur or open_epoch(m)
    bar.pend -= 1
    bar.tx += sends.bytes
    bar.ak |= m.K
    bar.cm |= bit
    if not bar.pend and bar.tx < 0:
        raise Found("S018", bar=bar, phase=bar.n)
    if not bar.pend and not bar.tx:
        complete(bar, m.clock)
