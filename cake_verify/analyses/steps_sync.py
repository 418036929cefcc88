"""Synchronisation as the machine executes it: one closure an operation, compiled from its effects."""

from __future__ import annotations

from typing import Any

from cake_ir.ops import effects_of
from cake_ir.ops.effects import Drain, Issue, Touch
from cake_ir.program import Op
from cake_ir.walk.agents import BLOCKED
from cake_verify.analyses.plan import Plan, Step
from cake_verify.analyses.state import Bar, Found, Meet, Member, complete, credit, join_lanes, open_epoch
from cake_verify.analyses.steps_send import announce

Values = tuple[Any, ...]


def wait(plan: Plan, op: Op, role: str) -> Step:
    """Wait for the phase that belongs to the slot; take what its contributors knew."""
    share = plan.share(op, role)
    b, stages, before = share.barrier, share.stages, share.offset - 1
    sent = plan.sends.get(str(op.attrs["barrier"]))
    at = plan.code.ops[op.id].index.get("stage")

    def step(m: Member, v: Values) -> Any:
        n = 0 if at is None else v[at]
        if n < 0:
            raise Found("S031", slot=n)
        bar, k = m.cta.bars[b][n % stages], n // stages - before  # phase k is complete once k are
        if bar.n < k:
            return BLOCKED
        bit = m.wcur
        if not bit:  # of the waits that the member's lanes return from until its next release or MMA
            clock = m.clock
            bit = m.wcur = 1 << clock.top
            clock.top += 1
            if m.single:
                m.K |= bit
            else:
                m.L |= bit
                m.waited |= bit
        if k > 0:
            known = m.K
            if k > 1:
                last = bar.phases[k - 2]
                if not last[2] & known and last[3] & ~(known | m.L | m.E):
                    raise Found("S019", bar=bar, phase=k - 1)
            phase = bar.phases[k - 1]
            m.K = known | phase[0]
            m.P |= phase[1]
            if bar.waited < k:
                bar.waited = k
        if bar.n != k:
            raise Found("S020", bar=bar, phase=k, missing=bit)
        bar.wr |= bit
        if sent is not None and m.index == 0:
            announce(m, bar, sent)
        return None

    return step


def give(m: Member, bar: Bar, units: int, known: int, bit: int, alone: bool = False) -> None:
    """Arrive `units` times with what the member knows; `alone`: one thread, without the fences of the others."""
    if units > bar.pend:
        raise Found("S022", bar=bar, phase=bar.n, units=units)
    if bar.token & ~known:
        credit(bar, known)
    bar.pend -= units
    bar.ak |= known
    bar.ap |= m.P if alone else m.P | m.F
    bar.cm |= bit
    if not bar.pend and not bar.tx:
        complete(bar, m.clock)


def arrive(plan: Plan, op: Op, role: str) -> Step:
    """Arrive as the barrier's kind says; every lane's earlier accesses are released."""
    share = plan.share(op, role)
    barrier = plan.program.barriers[str(op.attrs["barrier"])]
    b, stages, units = share.barrier, share.stages, share.units
    targets = plan.targets(barrier.name)
    at = plan.code.ops[op.id].index.get("stage")
    joins = barrier.arrive == "warp" and plan.program.roles[role].member_warps == 1
    copies = barrier.arrive == "cp_async"
    alone = barrier.arrive in ("tx", "mma")  # one elected thread arrives, nothing makes the others meet it

    def own(m: Member, v: Values) -> Any:
        """The same as `step` where there is one CTA, as mostly."""
        n = 0 if at is None else v[at]
        if n < 0:
            raise Found("S031", slot=n)
        bar, bit = m.cta.bars[b][n % stages], m.cur or open_epoch(m)
        known = m.K | m.E if alone else m.K | m.L | m.E
        left = bar.pend - units
        if left < 0:
            raise Found("S022", bar=bar, phase=bar.n, units=units)
        if bar.token & ~known:
            credit(bar, known)
        bar.pend = left
        bar.ak |= known
        bar.ap |= m.P if alone else m.P | m.F
        bar.cm |= bit
        if not left and not bar.tx:
            complete(bar, m.clock)
        m.cur = m.wcur = 0
        if joins:
            join_lanes(m)
        return None

    if plan.ranks == 1 and not copies:
        return own

    def step(m: Member, v: Values) -> Any:
        n = 0 if at is None else v[at]
        if n < 0:
            raise Found("S031", slot=n)
        bit = m.cur or open_epoch(m)
        known = m.K | m.E if alone else m.K | m.L | m.E
        if copies:
            for groups in (m.cp_open, m.cp):  # newest first: an arrival follows all copies in front of it, so that what is older than a followed one is followed
                for group, _ in reversed(groups):
                    if not group & ~m.tracked:
                        break
                    m.tracked |= group
            known |= m.tracked
        for r in targets[m.cta.rank]:
            give(m, m.world.ctas[r].bars[b][n % stages], units, known, bit, alone)
        m.cur = m.wcur = 0
        if joins:
            join_lanes(m)
        return None

    return step


def commit_tensor(plan: Plan, op: Op, role: str) -> Step:
    """Arrive when the issuing thread's earlier tensor-core work has completed."""
    share = plan.share(op, role)
    b, stages = share.barrier, share.stages
    targets = plan.targets(str(op.attrs["barrier"]))
    at = plan.code.ops[op.id].index.get("stage")

    def step(m: Member, v: Values) -> Any:
        n = 0 if at is None else v[at]
        if n < 0:
            raise Found("S031", slot=n)
        w = m.world
        bit = m.clock.bit()
        m.E |= bit
        known = m.K | m.E | m.tc
        for r in targets[m.cta.rank]:
            give(m, w.ctas[r].bars[b][n % stages], 1, known, bit)
        m.tc_open.clear()
        return None

    return step


def _join(m: Member, meet: Meet, threads: int, size: int) -> Any:
    """Come to a meeting once, and leave it with what everybody knew when its generation is complete."""
    if m.waiting < 0:
        bit = m.cur or open_epoch(m)
        if m.number in meet.came:
            raise Found("S010", meet=meet, twice=True)
        meet.ak |= m.K | m.L | m.E | bit
        meet.ap |= m.P | m.F
        meet.got += threads
        meet.came.append(m.number)
        m.cur = m.wcur = 0
        m.waiting = meet.gen
        if meet.got > meet.need:
            raise Found("S010", meet=meet, twice=False)
        if meet.got == meet.need:
            meet.tok_k, meet.tok_p = meet.ak, meet.ap
            meet.gen += 1
            meet.got = meet.ak = meet.ap = 0
            meet.came = []
    if meet.gen == m.waiting:
        return BLOCKED
    m.waiting = -1
    m.K |= meet.tok_k
    m.P |= meet.tok_p
    m.L = m.E = m.F = m.waited = 0
    return None


def sync(plan: Plan, name: str, role: str) -> Step:
    """Meet at a named barrier: every lane of every participant learns what all knew."""
    barrier = plan.program.named[name]
    threads = 32 * plan.program.roles[role].member_warps
    roles, own = barrier.roles, barrier.per_member
    first = sum(plan.program.roles[r].members for r in roles[: roles.index(role)]) if role in roles else 0

    def step(m: Member, v: Values) -> Any:
        return _join(m, plan.meet(m.cta, name, roles, first + m.index if own else -1), threads, 0)

    return step


def cluster_sync(plan: Plan, role: str) -> Step:
    """Meet all threads of the cluster."""
    threads = 32 * plan.program.roles[role].member_warps

    def step(m: Member, v: Values) -> Any:
        first = m.world.ctas[0]
        meet = first.meets.get(("", 0))
        if meet is None:
            meet = first.meets["", 0] = Meet(plan.program.threads * plan.ranks)
        return _join(m, meet, threads, 0)

    return step


def turn_wait(plan: Plan, name: str) -> Step:
    """Wait for the turn. It orders issue only: no knowledge passes."""

    def step(m: Member, v: Values) -> Any:
        passed = m.cta.turns[name][m.index]
        if passed[0] <= passed[1]:
            return BLOCKED
        passed[1] += 1
        return None

    return step


def turn_arrive(plan: Plan, name: str) -> Step:
    """Pass the turn on to the next member."""

    def step(m: Member, v: Values) -> Any:
        turns = m.cta.turns[name]
        after = turns[(m.index + 1) % len(turns)]
        if after[0] > after[1] or sum([t[0] for t in turns]) != sum([t[1] for t in turns]):
            raise Found("S015", turns=name, held=False)
        after[0] += 1
        return None

    return step


def fence() -> Step:
    """The writer's ordinary writes become visible to the async proxy of whoever learns of them."""

    def step(m: Member, v: Values) -> Any:
        if m.gw & ~(m.P | m.F):
            if m.single:
                m.P |= m.gw
            else:
                m.F |= m.gw
        m.cur = 0
        return None

    return step


def drain(plan: Plan, op: Op, effect: Drain) -> Step:
    """Wait until at most `pending` groups of an engine are in flight; who learns of it depends on who tracks the groups."""
    pending = int(op.attrs.get("pending") or 0)  # type: ignore[call-overload]  # a compile-time int

    def wgmma(m: Member, v: Values) -> Any:
        groups = m.mma
        gone = len(groups) - pending
        if gone > 0:
            for g in groups[:gone]:
                m.K |= g[0]
            del groups[:gone]
            m.acc = m.held = 0
            for g in groups:
                m.acc |= g[1]
                m.held |= g[2]
        return None

    def bulk(m: Member, v: Values) -> Any:
        gone = len(m.bulk) - pending
        if gone > 0:
            bits = 0
            for g in m.bulk[:gone]:
                bits |= g[0]
            if m.single:
                m.K |= bits
            else:
                m.E |= bits
            del m.bulk[:gone]
        return None

    def cp_async(m: Member, v: Values) -> Any:
        gone = len(m.cp) - pending
        if gone > 0:
            for g in m.cp[:gone]:
                m.L |= g[0]
                m.gw |= g[0]
            del m.cp[:gone]
        return None

    def tmem(m: Member, v: Values) -> Any:
        left = [t for t in m.tmem if t[2] != effect.engine]
        for t in m.tmem:
            if t[2] == effect.engine:
                m.L |= t[0]
        m.tmem = left
        m.tmem_busy = 0
        for t in left:
            m.tmem_busy |= t[1]
        return None

    if effect.engine in ("tmem_ld", "tmem_st"):
        return tmem
    return {"wgmma": wgmma, "bulk": bulk, "cp_async": cp_async}[effect.engine]


def commit_copies(op: Op) -> Step:
    """Close the open group of cp.async copies; an empty group counts too."""

    def step(m: Member, v: Values) -> Any:
        bits = 0
        number = -1
        for b, o in m.cp_open:
            bits |= b
            number = o
        m.cp.append((bits, number))
        m.cp_open = []
        return None

    return step


def signal() -> Step:
    """All threads of the member meet before one of them raises a flag."""

    def step(m: Member, v: Values) -> Any:
        m.K |= m.L | m.E
        m.P |= m.F
        m.L = m.E = m.F = m.waited = 0
        m.cur = m.wcur = 0
        return None

    return step


def grid_wait() -> Step:
    """All threads of the member wait until the launch before this one has ended and its writes can be seen."""

    def step(m: Member, v: Values) -> Any:
        bit = m.clock.bit()
        m.world.upstream |= bit
        m.K |= bit
        return None

    return step


def upstream(plan: Plan, op: Op) -> Step | None:
    """An access of data that the launch before this one may still be working on: somebody it is ordered after has to have waited."""
    tensor = plan.program.tensors.get(str(op.attrs.get("tensor")))
    touched = [t for e in effects_of(op, plan.program) for t in (e.touches if isinstance(e, Issue) else (e,) if isinstance(e, Touch) else ())]
    if tensor is None or tensor.const or not any(t.space == "gmem" for t in touched):
        return None
    name = tensor.name

    def step(m: Member, v: Values) -> Any:
        if not m.world.upstream & (m.K | m.L | m.E):
            raise Found("S016", tensor=name)
        return None

    return step
