"""Synchronisation effects as steps of the machine: the same for every operation that has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake_backend.simulate import derived
from cake_backend.simulate.barriers import Gate, MBarrier, NamedBarrier, OverArrival
from cake_backend.simulate.engines import Arrival, CopyWork, Group, MmaUnit, MmaWork
from cake_backend.simulate.faults import Abort, NotSimulated, label
from cake_backend.simulate.machine import Machine, Site, Step, Vals
from cake_backend.simulate.state import Cta, Warp
from cake_ir.derive.clusters import arrival_targets
from cake_ir.derive.member_meetings import idle_releases
from cake_ir.derive.mma_groups import mma_groups
from cake_ir.derive.sends import send_barriers
from cake_ir.ops.effects import Arrive, ClusterSync, Commit, Drain, FenceProxy, Flag, GridDependency, Sync, Turn, Wait
from cake_ir.program import Expr
from cake_ir.types import SlotT


def position(site: Site, operand: str = "stage") -> Callable[[Vals], int]:
    """The running count of a slot operand, or the plain number of an integer stage."""
    i = site.code.index.get(operand)
    return (lambda vals: 0) if i is None else (lambda vals: int(vals[i]))


def counts(site: Site, operand: str = "stage") -> bool:
    """Whether the operand is a ring's running count (an integer names a stage of phase 0)."""
    e = site.op.operands.get(operand)
    return isinstance(e, Expr) and isinstance(e.type, SlotT)


def barrier_at(cta: Cta, name: str, n: int) -> MBarrier:
    """The mbarrier of slot n: number n % stages."""
    objects = cta.barriers[name]
    return objects[n % len(objects)]


def wait(site: Site, effect: Wait) -> Step:
    """Test the parity of the slot's phase: (n / stages) & 1, inverted on a primed barrier."""
    name = str(site.op.attrs["barrier"])
    b = site.machine.program.barriers[name]
    at, running = position(site), counts(site)
    flip = int(b.primed)
    sends = send_barriers(site.machine.program).get(name)

    def step(warp: Warp, vals: Vals) -> Any:
        n = at(vals)
        objects = warp.cta.barriers[name]
        bar = objects[n % len(objects)]
        parity = (n // len(objects) & 1 if running else 0) ^ flip
        if not bar.passed(parity):
            return site.machine.block(warp, bar, f"`{name}` stage {bar.stage} parity {parity}")
        if sends is not None and warp.elected and warp.member == 0:
            try:
                bar.expect(sends.bytes)  # of the next phase
            except OverArrival as exc:
                raise site.machine.over_arrival(site, warp, name, bar.stage, exc) from None
        return None

    return step


def arrive(site: Site, effect: Arrive) -> Step:
    """Arrive with the kind that the barrier declares, here or at every CTA that the barrier's scope names."""
    m = site.machine
    name = str(site.op.attrs["barrier"])
    b = m.program.barriers[name]
    at = position(site)
    meets = site.width > 1 and (site.op.id in idle_releases(m.program) or derived.touches_slots(m.program, m.rings, site.role.name, b))

    def land(warp: Warp, n: int, arrivals: int) -> None:
        for rank in arrival_targets(m.program, name, warp.cta.rank):
            bar = barrier_at(warp.cta.cluster.by_rank[rank], name, n)
            try:
                bar.arrive(arrivals)
            except OverArrival as exc:
                raise m.over_arrival(site, warp, name, bar.stage, exc) from None

    def step(warp: Warp, vals: Vals) -> Any:
        n = at(vals)
        if b.arrive == "warp":
            land(warp, n, 1)
        elif b.arrive == "thread":
            land(warp, n, 32)
        elif b.arrive == "cp_async":
            _when_copied(m, site, warp, lambda: land(warp, n, 32))
        elif b.arrive == "member":
            # One thread arrives. Where the member's threads touched the slot themselves, or may not have come as far, its named barrier comes first.
            meeting = warp.cta.named[f"member {warp.role.name}", warp.member]
            if meets:
                busy = meet(site, warp, meeting, f"the other warps of the member at the release of `{name}`")
                if busy is not None:
                    return busy
            if warp.elected:
                land(warp, n, 1)
        elif warp.elected:
            land(warp, n, 1)
        return None

    return step


def _when_copied(m: Machine, site: Site, warp: Warp, then: Callable[[], None]) -> None:
    """`cp.async.mbarrier.arrive`: arrive once every copy that the warp has issued so far has landed."""
    before = [c for g in [*warp.copy_groups, warp.open_copies] for c in g if not c.complete]
    m.submit(Arrival("cp_async", site.op, warp, lambda work: then(), before=before))


# ------------------------------------------------------------------ named barriers, turns, clusters


def meet(site: Site, warp: Warp, bar: NamedBarrier, what: str) -> Any:
    return join(site.machine, warp, bar, what)


def join(m: Machine, warp: Warp, bar: NamedBarrier, what: str) -> Any:
    """`bar.sync`: count this warp once, then wait for the generation to complete."""
    if warp.token < 0:
        warp.token = bar.arrive()
    if not bar.passed(warp.token):
        return m.block(warp, bar, what)
    warp.token = -1
    return None


def sync(site: Site, effect: Sync) -> Step:
    name = str(site.op.attrs.get("barrier") or site.op.attrs["sync"])
    barrier = site.machine.program.named[name]
    per_member = barrier.per_member
    counted = site.role.name in barrier.roles

    def step(warp: Warp, vals: Vals) -> Any:
        if not counted:  # on an H200 warps beyond the count are left waiting, or end the kernel (HW073, HW075)
            told = f"`{warp.role.name}` comes to `{name}`, which counts {' and '.join(f'`{r}`' for r in barrier.roles)}"
            raise Abort(site.machine.located("X002", told, site.op, warp=warp, barrier=name))
        met = warp.cta.named.get((name, warp.member if per_member else 0))
        if met is None:
            raise Abort(site.machine.located("X002", f"member {warp.member} of `{warp.role.name}` comes to `{name}`, which counts fewer members", site.op, warp=warp, barrier=name))
        return meet(site, warp, met, f"the others at `{name}`")

    return step


def cluster_sync(site: Site, effect: ClusterSync) -> Step:
    return lambda warp, vals: meet(site, warp, warp.cta.cluster.barrier, "the other warps of the cluster")


def turn(site: Site, effect: Turn) -> Step:
    """Wait: `bar.sync` on this member's own barrier. Pass on: `bar.arrive` on the next member's."""
    name = str(site.op.attrs["barrier"])

    def step(warp: Warp, vals: Vals) -> Any:
        if effect.kind == "wait":
            return meet(site, warp, warp.cta.named[name, warp.member], f"its turn of `{name}`")
        warp.cta.named[name, (warp.member + 1) % warp.role.members].arrive()
        return None

    return step


# ------------------------------------------------------------------ groups of asynchronous work


def commit(site: Site, effect: Commit) -> Step:
    if effect.engine == "cp_async":

        def close(warp: Warp, vals: Vals) -> Any:
            warp.copy_groups.append(warp.open_copies)
            warp.open_copies = []

        return close
    if effect.engine != "tcgen05":
        raise NotSimulated(f"a commit of {effect.engine}", site.op.span)
    name, at = str(site.op.attrs["barrier"]), position(site)

    def arrive_later(warp: Warp, vals: Vals) -> Any:
        if not warp.elected:
            return None
        m, n = site.machine, at(vals)

        def land(group: Group) -> None:
            for rank in arrival_targets(m.program, name, warp.cta.rank):
                bar = barrier_at(warp.cta.cluster.by_rank[rank], name, n)
                try:
                    bar.arrive()
                except OverArrival as exc:
                    raise m.over_arrival(site, warp, name, bar.stage, exc) from None

        enqueue(site, warp, tensor_unit(warp), land, vals)
        return None

    return arrive_later


def tensor_unit(warp: Warp) -> MmaUnit:
    """The queue of tcgen05 operations of an issuing thread."""
    if warp.unit is None:
        warp.unit = MmaUnit(size=1)
    return warp.unit


def enqueue(site: Site, warp: Warp, unit: MmaUnit, execute: Callable[[Group], None], vals: Vals, fills: frozenset[int] | None = None) -> Group:
    """Put an operation of one thread at the end of its queue; `fills` are the columns of tensor memory that a copy writes."""
    group = Group(site.op, unit, execute, {warp.warp: vals}, {warp.warp: warp}, columns=fills or frozenset(), copy=fills is not None)
    unit.groups.append(group)
    submit_group(site.machine, group, warp)
    return group


def submit_group(m: Machine, group: Group, warp: Warp) -> MmaWork:
    """Make a group that all its warps have issued ready for execution."""

    def run(work: Any) -> None:
        unit = group.unit
        group.execute(group)
        group.done = True
        while unit.executed < len(unit.groups) and unit.groups[unit.executed].done:
            unit.executed += 1
        unit.wake()

    work = (CopyWork if group.copy else MmaWork)("mma", group.op, warp, run, group=group)
    group.work = work
    m.submit(work)
    return work


def drain(site: Site, effect: Drain) -> Step:
    m = site.machine
    pending = int(site.op.attrs.get("pending") or 0)  # type: ignore[call-overload]  # a compile-time integer
    if effect.engine == "wgmma":
        return lambda warp, vals: _drain_mma(m, warp, pending)
    if effect.engine == "cp_async":
        return lambda warp, vals: _drain_copies(m, warp, pending)
    if effect.engine == "bulk":
        return lambda warp, vals: _drain_stores(m, warp, pending, effect.read)
    from cake_backend.simulate.tmem import drain_moves

    return lambda warp, vals: drain_moves(m, warp, effect.engine)


def _drain_mma(m: Machine, warp: Warp, pending: int) -> Any:
    """At most `pending` groups stay in flight: older ones are executed, and their registers and operands are free."""
    unit, want, opens = warp.unit, warp.issued, mma_groups(m.program).opens
    while unit is not None and pending and want:
        want -= 1
        pending -= unit.groups[want].op.id in opens
    if unit is None or want <= warp.retired:
        return None
    if unit.executed < want:
        return m.block(warp, unit, f"its matrix multiplications, {want - unit.executed} of them outstanding")
    for group in unit.groups[warp.retired : want]:
        retire(warp, group)
    warp.retired = want
    return None


def retire(warp: Warp, group: Group) -> None:
    """One warp has seen a group complete: its accumulator shows its value again unless a younger group uses it."""
    for key, k in group.uses[warp.warp]:
        busy = warp.busy[key]
        busy[k] -= 1
        if k == 0 and busy[0] == 0:
            name, stage = key
            value = warp.held_back.pop(key)
            if isinstance(warp.regs[name], list):
                warp.regs[name][stage] = value
            else:
                warp.regs[name] = value
            warp.unwritten.discard(name)
    if group.work is not None:
        group.work.release()


def _drain_copies(m: Machine, warp: Warp, pending: int) -> Any:
    keep = len(warp.copy_groups) - pending
    for group in warp.copy_groups[:keep] if keep > 0 else []:
        for copy in group:
            if not copy.complete:
                return m.block(warp, copy.gate, "its cp.async copies")
    if keep > 0:
        del warp.copy_groups[:keep]
    return None


def _drain_stores(m: Machine, warp: Warp, pending: int, read: bool) -> Any:
    """Only the issuing thread has groups; for the other warps of the member there is nothing to wait for."""
    keep = len(warp.stores) - pending
    for store in warp.stores[:keep] if keep > 0 else []:
        if not (store.read if read else store.complete):
            return m.block(warp, store.gate, "its bulk stores to have " + ("read shared memory" if read else "completed"))
    for store in warp.stores[:keep] if keep > 0 else []:
        store.release()
    if keep > 0 and not read:
        del warp.stores[:keep]
    elif keep > 0:
        # Their reads are over; their writes may still be waited for by a later `read=False`.
        warp.stores = [s for s in warp.stores[:keep] if not s.complete] + warp.stores[keep:]
    return None


# ------------------------------------------------------------------ the rest


def fence_proxy(site: Site, effect: FenceProxy) -> Step:
    def step(warp: Warp, vals: Vals) -> Any:
        for pool in warp.cta.pools.values():
            pool.fence(id(warp))
        for tensor in site.machine.tensors.values():
            tensor.fence(warp.cta.number)

    return step


def grid_dependency(site: Site, effect: GridDependency) -> Step:
    """`pdl_wait` blocks until the upstream kernel has ended; `pdl_launch` concerns the next one."""

    def step(warp: Warp, vals: Vals) -> Any:
        upstream = site.machine.upstream
        if effect.kind == "wait" and upstream is not None and not upstream.complete:
            return site.machine.block(warp, upstream.gate, "the upstream kernel")
        return None

    return step


def flag(site: Site, effect: Flag) -> Step:
    """`signal`: the member meets, then its elected thread writes the word; a role that only issues is one thread. `spin`: block until the word is at least the value."""
    m, op = site.machine, site.op
    tensor, at, value = m.tensors[str(op.attrs["flags"])], site.code.index["i"], site.code.index["value"]

    def word(warp: Warp, vals: Vals) -> int:
        i = int(vals[at])
        if not 0 <= i < tensor.raw.size:
            raise Abort(m.located("X006", f"{label(op)} touches element {i} of `{tensor.name}`, which has {tensor.raw.size}", op, warp=warp))
        return i

    def gate(i: int) -> Gate:
        return m.flags.setdefault((tensor.name, i), Gate())

    def signal(warp: Warp, vals: Vals) -> Any:
        i = word(warp, vals)
        if site.width > 1 and site.role.name not in m.issue_only:
            busy = join(m, warp, warp.cta.named[f"member {site.role.name}", warp.member], f"the member before it signals `{tensor.name}`")
            if busy is not None:
                return busy
        if warp.elected:
            tensor.array.reshape(-1)[i] = int(vals[value])
            gate(i).wake()
        return None

    def spin(warp: Warp, vals: Vals) -> Any:
        i, wanted = word(warp, vals), int(vals[value])
        if int(tensor.array.reshape(-1)[i]) < wanted:
            return m.block(warp, gate(i), f"`{tensor.name}[{i}]` to be at least {wanted}")
        for seen in m.tensors.values():
            seen.fence()
        return None

    return signal if effect.kind == "signal" else spin


STEPS: dict[type, Callable[[Site, Any], Step]] = {
    Wait: wait, Arrive: arrive, Sync: sync, ClusterSync: cluster_sync, Turn: turn, Commit: commit, Drain: drain, FenceProxy: fence_proxy,
    GridDependency: grid_dependency, Flag: flag,
}  # fmt: skip

__all__ = ["STEPS", "barrier_at", "counts", "enqueue", "position", "submit_group", "tensor_unit"]
