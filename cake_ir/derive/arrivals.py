"""Arrival counts of mbarriers: who arrives in one phase, and how often."""

from __future__ import annotations

from cake_ir.derive.acting import acting, tx_loads
from cake_ir.derive.clusters import arriving
from cake_ir.derive.sends import send_barriers
from cake_ir.derive.structure import Site, members_at, sites
from cake_ir.fact import fact
from cake_ir.ops.effects import Arrive, Commit
from cake_ir.program import Barrier, Program
from cake_ir.record import record


@record(eq=False)
class Share:
    """What one role gives to a phase: `members` that arrive, each `units` times; `sites` are the operations with which it does."""

    role: str
    members: int
    units: int
    sites: tuple[Site, ...]

    @property
    def count(self) -> int:
        return self.members * self.units


@record(eq=False)
class Arrivals:
    """The arrivals of one phase: by declared producer, times the CTAs that arrive; `strangers` arrive without being declared."""

    barrier: Barrier
    shares: tuple[Share, ...]
    strangers: tuple[Share, ...]
    ctas: int

    @property
    def count(self) -> int:
        """The barrier's init count."""
        return max(1, self.ctas * sum(s.count for s in self.shares))

    @property
    def given(self) -> int:
        """The arrivals that operations give in a phase, by whomever."""
        return self.ctas * sum(s.count for s in (*self.shares, *self.strangers) if s.sites)


def units(program: Program, barrier: Barrier, role: str) -> int:
    """Arrivals of one member of `role` a phase, by the barrier's kind."""
    warps = program.roles[role].member_warps
    return {"warp": warps, "thread": 32 * warps, "cp_async": 32 * warps}.get(barrier.arrive, 1)


@fact
def arrivals(program: Program) -> dict[str, Arrivals]:
    """The arrivals of every mbarrier, by name. A declared producer that never arrives is counted in full: it is what is missing."""
    by: dict[tuple[str, str], list[Site]] = {}
    doers = acting(program)
    # a load arrives, too: it arms the byte count
    arriving_ops = {s.op.id for kind in (Arrive, Commit) for s in doers.get(kind, ())}.union(tx_loads(program))
    for site in sites(program) if arriving_ops else ():
        if site.op.id in arriving_ops and (name := str(site.op.attrs.get("barrier"))) in program.barriers:
            by.setdefault((name, site.role), []).append(site)
    out: dict[str, Arrivals] = {}
    for barrier in program.barriers.values():
        if (sends := send_barriers(program).get(barrier.name)) is not None:
            # The one arrival of a phase is the receiver's own announcement of its bytes.
            out[barrier.name] = Arrivals(barrier, (Share(sends.sends[0].role, 1, 1, sends.sends),), (), 1)
            continue
        shares: list[Share] = []
        strangers: list[Share] = []
        for role in dict.fromkeys((*barrier.prod, *(r for b, r in by if b == barrier.name))):
            found = tuple(by.get((barrier.name, role), ()))
            members = {m for s in found for m in members_at(program, s)} if found else set(range(program.roles[role].members))
            share = Share(role, len(members), units(program, barrier, role), found)
            (shares if role in barrier.prod else strangers).append(share)
        out[barrier.name] = Arrivals(barrier, tuple(shares), tuple(strangers), arriving(program, barrier.name))
    return out
