"""What the machine needs of a program beside its operations: barrier numbers, counts, participants, memory atoms, register places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cake_ir.derive.arrivals import arrivals, units
from cake_ir.derive.clusters import along, arrival_targets, axis_of
from cake_ir.derive.issue import issue_roles
from cake_ir.derive.pairs import landing
from cake_ir.derive.sends import send_barriers
from cake_ir.derive.structure import listed, sites
from cake_ir.derive.transactions import TxSet, transactions
from cake_ir.program import Assign, Expr, Op, Program
from cake_ir.types import ScalesT, SlotT, TmemT, ViewT
from cake_ir.walk.code import RoleCode, compile_roles
from cake_verify.analyses.fragment_paths import Paths, paths
from cake_verify.analyses.lookups import UNRINGED, Columns, Lookup
from cake_verify.analyses.places import register_touches
from cake_verify.analyses.regions import Regions
from cake_verify.analyses.state import Bar, Cta, Meet, World


@dataclass(slots=True)
class Share:
    """How an arrival by one role counts on one barrier."""

    barrier: int
    stages: int
    offset: int
    units: int


class Plan:
    """Tables of one program, compiled once and used by every run."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code: RoleCode = compile_roles(program)
        self.sites = {s.op.id: s for s in sites(program)}
        self.names = tuple(program.barriers)
        self.number = {name: i for i, name in enumerate(self.names)}
        self.followed = tuple(b.name for b in program.barriers.values() if b.arrive == "cp_async")
        self.arrivals = arrivals(program)
        self.issuers = issue_roles(program)
        self.sets, _ = transactions(program)  # what is wrong with them is S018's to say
        self.set_of: dict[int, TxSet] = {s.op.id: t for t in self.sets for s in t.loads}
        self.places, self.registers = register_touches(program, self.code)
        self.regions = Regions(program)
        self.sends = send_barriers(program)
        self.phased = {b.pipeline for b in program.barriers.values()}
        self.objects = [(program.rings[b.pipeline].stages, self.arrivals[b.name].count, self.sends[b.name].bytes if b.name in self.sends else 0) for b in program.barriers.values()]
        self.cluster = program.launch.cluster
        self.ranks = self.cluster[0] * self.cluster[1]
        self._paths: dict[int, Paths] = {}
        self._lookups: dict[tuple[str, int, bool, int, int, int, int], Lookup] = {}
        self._views: dict[tuple[str, str], Expr] = {}

    def paths(self, tree: Expr) -> Paths:
        """The leaves of a fragment expression of this plan's code, found once: the code keeps the tree, so that its identity stands for it."""
        found = self._paths.get(id(tree))
        if found is None:
            found = self._paths[id(tree)] = paths(tree)
        return found

    # ------------------------------------------------------------ barriers

    def share(self, op: Op, role: str) -> Share:
        """The barrier that `op` names, as the machine counts it."""
        barrier = self.program.barriers[str(op.attrs["barrier"])]
        stages = self.program.rings[barrier.pipeline].stages
        return Share(self.number[barrier.name], stages, 1 if barrier.primed else 0, units(self.program, barrier, role))

    def targets(self, barrier: str) -> tuple[tuple[int, ...], ...]:
        """For every CTA of the cluster, the CTAs at which its arrivals on `barrier` count."""
        return tuple(arrival_targets(self.program, barrier, r) for r in range(self.ranks))

    def landings(self, barrier: str) -> tuple[int, ...]:
        """For every CTA of the cluster, the CTA on whose barrier its loads complete."""
        return tuple(landing(self.program, barrier, r) for r in range(self.ranks))

    def multicast(self, axis: str) -> tuple[tuple[int, ...], ...]:
        """For every CTA, the CTAs that receive its multicast along `axis`, in slice order."""
        k = axis_of(self.program, axis)
        return tuple(along(self.program, k, r) for r in range(self.ranks))

    # ------------------------------------------------------------ shared memory

    def slots(self, op: Op, operand: str) -> int:
        """How many slots the position of a view operand runs over: those of its ring, or the view's stages where a number is given."""
        e = op.operands.get(operand)
        assert isinstance(e, Expr) and isinstance(e.type, ViewT)
        return self._slots(self.ring_of(op, operand), e.type.view)

    def _slots(self, ring: str | None, view: str) -> int:
        return self.program.views[view].stages if ring is None else self.program.rings[ring].stages

    def ring_of(self, op: Op, operand: str) -> str | None:
        """The ring whose slot selects the stage of a view operand, following view names to their definitions."""
        e = op.operands.get(operand)
        for _ in range(20):
            if not isinstance(e, Expr):
                break
            if e.op == "stage":
                slot = e.args[1].type
                return slot.ring if isinstance(slot, SlotT) else None
            e = self._definition(op, str(e.attrs["name"])) if e.op == "var" else e.args[0] if e.args else None
        stage = op.operands.get("stage") if operand == "view" else None  # a list of rows beside the view does not ride on its ring
        return stage.type.ring if isinstance(stage, Expr) and isinstance(stage.type, SlotT) else None

    def _definition(self, op: Op, name: str) -> Expr | None:
        """What a view name of the operation's role stands for."""
        key = (self.sites[op.id].role, name)
        if not self._views:
            for block, body in listed(self.program):
                for s in body:
                    if isinstance(s, Assign) and isinstance(s.value, Expr) and isinstance(s.value.type, ViewT):
                        self._views[block.role, s.targets[0]] = s.value
        return self._views.get(key)

    def lookup(self, op: Op, operand: str, row: int = 0, rows: int | None = None, col: int = 0, cols: int | None = None) -> Lookup:
        """The atoms of a view operand's rectangle by the operand's value; offsets select a part of it."""
        e = op.operands[operand]
        assert isinstance(e, Expr) and isinstance(e.type, ViewT)
        t = e.type
        rows, cols = t.rows if rows is None else rows, t.cols if cols is None else cols
        name, ring = t.view, self.ring_of(op, operand)
        stages = self._slots(ring, name) if ring is not None else UNRINGED
        phased = ring is None or ring in self.phased  # without phases the slots before the first are the last ones
        made = self._lookups.get((name, stages, phased, row, rows, col, cols))
        if made is not None:
            return made
        made = self._lookups[name, stages, phased, row, rows, col, cols] = Lookup(self.regions, name, stages, self.program.views[name].stages, phased, (row, rows, col, cols))
        return made

    def columns(self, t: TmemT | ScalesT) -> Columns:
        """The atoms of a range of tensor-memory columns by the operand's value."""
        if isinstance(t, ScalesT):
            assert isinstance(t.source, TmemT)
            t = t.source
        return Columns(self.regions, self.program.tmems[t.tmem], t.cols)

    # ------------------------------------------------------------ worlds

    def world(self) -> World:
        """Fresh CTAs of one cluster, no members yet."""
        world = World()
        for rank in range(self.ranks):
            cta = Cta(rank)
            for i, (stages, count, sent) in enumerate(self.objects):
                cta.bars.append([Bar(i, rank, s, count) for s in range(stages)])
                for bar in cta.bars[-1] if sent else ():
                    bar.pend, bar.tx, bar.arm = 0, sent, sent
            for turns in self.program.turns.values():
                members = self.program.roles[turns.role].members
                cta.turns[turns.name] = [[1 if i == 0 else 0, 0] for i in range(members)]
            atoms = len(self.regions.cells)
            cta.W, cta.G, cta.R, cta.O, cta.Y = [0] * atoms, [0] * atoms, [0] * atoms, [-1] * atoms, [None] * atoms
            world.ctas.append(cta)

        self.regions.on_split = self.splitter(world.ctas)
        return world

    @staticmethod
    def splitter(ctas: list[Cta]) -> Callable[[int], None]:
        """What is done with the state of all CTAs when an atom is split (-1: when a new one is made)."""

        def split(atom: int) -> None:
            for cta in ctas:
                if atom < 0:
                    cta.O.append(-1)
                    cta.Y.append(None)
                    for empty in (cta.W, cta.G, cta.R):
                        empty.append(0)
                else:
                    for values in (cta.W, cta.G, cta.R, cta.O, cta.Y):
                        values.append(values[atom])

        return split

    def meet(self, cta: Cta, name: str, roles: tuple[str, ...], member: int) -> Meet:
        """The hardware barrier behind a named barrier for one member (-1: all meet at one)."""
        found = cta.meets.get((name, member))
        if found is None:
            each = [self.program.roles[r] for r in roles]
            need = 32 * each[0].member_warps if member >= 0 else 32 * sum(r.warps for r in each)
            found = cta.meets[name, member] = Meet(need)
        return found


Step = Callable[[Any, tuple[Any, ...]], Any]


def view_type(op: Op, operand: str) -> ViewT:
    """The static type of a view operand."""
    e = op.operands[operand]
    assert isinstance(e, Expr) and isinstance(e.type, ViewT)
    return e.type
