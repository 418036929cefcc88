"""Who in a cluster writes whose slots: multicast groups, and the CTAs at which a cluster-wide arrival must arrive."""

from __future__ import annotations

from cake_ir.derive.acting import acting, tx_loads
from cake_ir.derive.pairs import joins, leader, pair, paired_roles
from cake_ir.derive.structure import Site
from cake_ir.fact import fact
from cake_ir.ops.effects import Wait
from cake_ir.program import Program


def axis_of(program: Program, name: str) -> int:
    """The cluster axis, 0 or 1, that a scheduler's axis name (or `x`, `y`) stands for."""
    if name in ("x", "y"):
        return "xy".index(name)
    for scheduler in program.schedulers.values():
        if name in scheduler.names[:2]:
            return scheduler.names.index(name)
    return 1 if name == "n" else 0


def along(program: Program, axis: int, rank: int) -> tuple[int, ...]:
    """The linear ranks of the CTAs that share every other coordinate with `rank`, in order along `axis`."""
    cx, cy = program.launch.cluster
    x, y = rank % cx, rank // cx
    return tuple(i + cx * y for i in range(cx)) if axis == 0 else tuple(x + cx * i for i in range(cy))


def is_tx_load(site: Site, program: Program) -> bool:
    """Whether the operation is an asynchronous copy that completes by bytes on a barrier of this CTA, which it arms."""
    return site.op.id in tx_loads(program)


@fact
def guarded_loads(program: Program) -> dict[str, tuple[Site, ...]]:
    """The loads that each barrier's wait guards: those after it in its role, up to the next wait on a barrier of that ring."""
    guards: dict[str, list[Site]] = {}
    latest: dict[tuple[str, str], str] = {}
    loads = tx_loads(program)
    waits = {s.op.id: s for s in acting(program).get(Wait, ())}
    for number, site in sorted({**waits, **loads}.items()) if loads else ():
        name = str(site.op.attrs.get("barrier"))
        if name not in program.barriers:
            continue
        ring = (site.role, program.barriers[name].pipeline)
        if number in waits:
            latest[ring] = name
        elif ring in latest:
            guards.setdefault(latest[ring], []).append(site)
    return {name: tuple(found) for name, found in guards.items()}


@fact
def multicast_axes(program: Program, barrier: str) -> frozenset[int]:
    """The cluster axes along which loads guarded by `barrier` are multicast."""
    loads = guarded_loads(program).get(barrier, ())
    return frozenset(axis_of(program, str(s.op.attrs["multicast"])) for s in loads if s.op.attrs.get("multicast"))


def arrival_targets(program: Program, barrier: str, rank: int) -> tuple[int, ...]:
    """The CTAs at which an arrival by CTA `rank` counts: itself, or with cluster scope every CTA that writes the slot by multicast.

    A cluster-scope barrier that guards no multicast load is arrived at in every CTA of the cluster; one that joins a pair in its leader
    or in both (`cake_ir.derive.pairs`).
    """
    if program.barriers[barrier].scope != "cluster":
        return (rank,)
    join = joins(program).get(barrier)
    if join is not None:
        return (leader(rank),) if join == "gathered" else pair(rank)
    axes = multicast_axes(program, barrier)
    if not axes:
        return tuple(range(program.launch.cluster[0] * program.launch.cluster[1])) if barrier not in guarded_loads(program) else (rank,)
    return tuple(sorted({r for axis in axes for r in along(program, axis, rank)}))


def arriving(program: Program, barrier: str) -> int:
    """How many CTAs arrive at one object of a barrier in each phase."""
    join = joins(program).get(barrier)
    if join is None:
        return len(arrival_targets(program, barrier, 0))
    return 2 if join == "gathered" and not paired_roles(program).issuperset(program.barriers[barrier].prod) else 1
