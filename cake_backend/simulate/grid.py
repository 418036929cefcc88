"""The launch: CTAs with their memory and barriers, and one warp agent for each warp that runs a role's program."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake_backend.simulate import derived
from cake_backend.simulate.barriers import MBarrier, NamedBarrier, RegisterPool
from cake_backend.simulate.engines import Work
from cake_backend.simulate.faults import Abort, NotSimulated
from cake_backend.simulate.floats import decode
from cake_backend.simulate.machine import Machine
from cake_backend.simulate.memory import Pool
from cake_backend.simulate.roles import around
from cake_backend.simulate.state import Cluster, Cta, Warp
from cake_ir.derive.pairs import runs
from cake_ir.derive.sends import send_barriers
from cake_ir.derive.structure import definitions
from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import GridDependency
from cake_ir.placement import tile_order
from cake_ir.program import Expr, Program, Scheduler
from cake_ir.scheduler import cluster_total, cta_tile, dealt, decode_group, group_totals
from cake_ir.walk.agents import Agent
from cake_ir.walk.code import BOUNDED, Context, RoleCode


@dataclass(frozen=True, slots=True)
class Grid:
    """The warps of a launch, and how many CTAs they belong to."""

    warps: tuple[Warp, ...]
    ctas: int


def scalar_arguments(program: Program, scalars: Mapping[str, int | float]) -> dict[str, Any]:
    """Run-time scalars by name, f32 ones rounded; raises `Abort` (X013) where one is missing."""
    out: dict[str, Any] = {}
    for p in program.scalars.values():
        if p.name not in scalars:
            raise Abort(Fault("X013", f"no value is given for `{p.name}`", p.span))
        value = scalars[p.name]
        out[p.name] = float(np.float32(value)) if p.dtype in ("f32", "f16", "bf16") else int(value)
    return out


def evaluate(program: Program, e: Expr, args: Mapping[str, Any]) -> int:
    """A uniform integer expression over run-time scalars and lets, such as a tile count."""
    known: dict[str, int] = {}
    for d in definitions(program.lets, e):
        known[d.name] = _evaluate(d.value, args, known)
    return _evaluate(e, args, known)


def _evaluate(e: Expr, args: Mapping[str, Any], known: dict[str, int]) -> int:
    """The same; `known` has the values of the names in it."""
    a = [_evaluate(x, args, known) for x in e.args]
    if e.op == "const":
        return int(e.attrs["value"])  # type: ignore[arg-type]  # tile counts are integers
    if e.op == "param":
        return int(args[str(e.attrs["name"])])
    if e.op == "var":
        return known[str(e.attrs["name"])]
    if e.op == "cdiv":
        return -(-a[0] // a[1])
    table = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": BOUNDED["mul"], "floordiv": lambda x, y: x // y,
             "mod": lambda x, y: x % y, "min": min, "max": max, "shl": BOUNDED["shl"], "shr": operator.rshift, "bitand": operator.and_, "bitor": operator.or_}  # fmt: skip
    if e.op in table:
        return table[e.op](a[0], a[1])
    raise NotSimulated(f"a tile count made with `{e.op}`", e.span)


# ------------------------------------------------------------------ tiles


class Tiles:
    """Hands out a scheduler's tiles: the k-th of a cluster is the same for every warp that asks for it."""

    def __init__(self, machine: Machine, s: Scheduler, args: Mapping[str, Any], clusters: int) -> None:
        self.s, self.clusters = s, clusters
        self.counts = tuple(evaluate(machine.program, e, args) for e in s.tiles)
        self.order = tile_order(s, self.counts)
        self.offsets: list[int] = []
        if s.kind == "grouped":
            t = machine.tensors[str(s.offsets)]
            self.offsets = [int(x) for x in decode(t.raw, t.dtype).reshape(-1)]
            self.total = sum(group_totals(self.offsets, int(s.block or 1), self.counts[0], s.cluster))
        else:
            self.total = cluster_total(self.order)
        self.drawn: dict[int, list[int]] = {}
        self.next = 0

    def linear(self, cluster: int, k: int) -> int | None:
        """The number of a cluster's k-th tile, None past its last."""
        if self.s.kind in ("counter", "clc"):
            mine = self.drawn.setdefault(cluster, [])
            while len(mine) <= k and self.next < self.total:
                mine.append(self.next)
                self.next += 1
            return mine[k] if k < len(mine) else None
        if self.s.kind == "grouped":
            number = cluster + k * max(1, self.clusters)
        else:
            number = dealt(self.order, self.s.kind, cluster, self.clusters, k)
        return number if number < self.total else None

    def of(self, cta: Cta) -> Iterator[tuple[int, ...]]:
        """A CTA's tiles in order."""
        k = 0
        while (number := self.linear(cta.cluster.number, k)) is not None:
            if self.s.kind == "grouped":
                g = decode_group(
                    number, self.offsets, int(self.s.block or 1), self.counts[0], self.s.raster, self.s.swizzle, self.s.cluster, cta.rank
                )
                assert g is not None
                yield (g.group, g.m, g.n, g.row0, g.rows)
            else:
                yield cta_tile(self.order, number, cta.rank)
            k += 1


# ------------------------------------------------------------------ CTAs


def lay_out(m: Machine, code: RoleCode, args: Mapping[str, Any], ctas: int | None) -> Grid:
    """Build every CTA of the launch and the agents of its warps."""
    p = m.program
    size = p.launch.cluster[0] * p.launch.cluster[1]
    clusters = max(1, -(-ctas // size)) if ctas else 2
    tiles = {name: Tiles(m, s, args, clusters) for name, s in p.schedulers.items()}
    if p.launch.grid == "tiles" and tiles:
        clusters = max(t.total for t in tiles.values())
    elif not tiles:
        clusters = max(1, -(-(ctas or 1) // size))
    else:
        clusters = min(clusters, max(1, max(t.total for t in tiles.values())))
    for t in tiles.values():
        t.clusters = clusters
    extents = {(name, dim): extent for name, t in m.tensors.items() for dim, extent in enumerate(t.shape)}
    warps: list[Warp] = []
    for c in range(clusters):
        cluster = Cluster(c)
        first = len(warps)
        for y in range(p.launch.cluster[1]):
            for x in range(p.launch.cluster[0]):
                rank = x + p.launch.cluster[0] * y
                cta = _cta(p, Cta(len(m.ctas), rank, (x, y), cluster))
                m.ctas.append(cta)
                cluster.by_rank[rank] = cta
                warps += _warps(m, code, cta, args, extents, tiles)
        mine = warps[first:]
        cluster.running = len(mine)
        cluster.barrier.name, cluster.barrier.expected = "cluster", sum(r.warps for r in p.roles.values()) * size
    for w in warps:
        m.chooser.enter(w)
    waiting = next((op for op in p.ops if GridDependency("wait") in effects_of(op, p)), None)
    if waiting is not None and warps:
        # A kernel that waits may start before the one upstream has ended: that is one more thing which happens when it happens.
        m.upstream = Work("upstream", waiting, warps[0], lambda work: None)
        m.chooser.enter(m.upstream)
        m.work.append(m.upstream)
    return Grid(tuple(warps), len(m.ctas))


def _cta(p: Program, cta: Cta) -> Cta:
    cta.pools = {name: Pool(pool.nbytes) for name, pool in p.pools.items()}
    for b in p.barriers.values():
        count = derived.expected_arrivals(p, b)
        cta.barriers[b.name] = [MBarrier([], b.name, i, count, count) for i in range(p.rings[b.pipeline].stages)]
        for bar in cta.barriers[b.name] if b.name in send_barriers(p) else ():
            bar.expect(send_barriers(p)[b.name].bytes)
    for n in p.named.values():
        roles = [p.roles[r] for r in n.roles]
        most = max(r.members for r in p.roles.values())  # also of roles that are not meant to come: what does not fit hangs, as it does there
        for member in range(most) if n.per_member else (0,):
            expected = sum(r.member_warps if n.per_member else r.warps for r in roles)
            cta.named[n.name, member] = NamedBarrier([], n.name, expected)
    for r in p.roles.values():
        for member in range(r.members):
            cta.named[f"member {r.name}", member] = NamedBarrier([], r.name, r.member_warps)
    for t in p.turns.values():
        role = p.roles[t.role]
        for member in range(role.members):
            # Both the member that passes the turn on and the one that waits for it are counted.
            cta.named[t.name, member] = NamedBarrier([], t.name, 2 * role.member_warps)
    cta.registers = [RegisterPool() for _ in range(4)]
    return cta


def _warps(
    m: Machine, code: RoleCode, cta: Cta, args: Mapping[str, Any], extents: dict[tuple[str, int], int], tiles: dict[str, Tiles]
) -> list[Warp]:
    p = m.program
    out: list[Warp] = []
    for name, program in code.roles.items():
        role = p.roles[name]
        if not runs(p, name, cta.rank):
            continue
        alone = name in m.issue_only
        for member in range(role.members):
            for w in range(1 if alone else role.member_warps):
                context = Context(dict(args), member, cta.place, p.launch.cluster, cta.number, extents, lambda s: tiles[s].of(cta))
                agent = Agent(name, member, cta.number, around(program(context)), w, len(out))
                number = role.warp_lo + member * role.member_warps + w
                out.append(Warp(agent, cta, role, member, w, number, w == 0))
    return out
