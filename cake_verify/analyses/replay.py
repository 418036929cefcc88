"""The run that met a fault, once more with a log: who did what, in which order, on which bytes.

The fast run keeps nothing but masks. Since it is deterministic, the same setting leads to the same fault again, and this time every step
is written down for the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cake_ir.derive.clusters import guarded_loads
from cake_ir.derive.mentions import words
from cake_ir.derive.pairs import of_pair
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Arrive, Commit, Drain, Issue, Sync, Touch, Turn, Wait
from cake_ir.ops.scales import region_of
from cake_ir.program import Expr, Op
from cake_ir.record import record
from cake_ir.types import ViewT
from cake_verify.analyses.exit import check_exit
from cake_verify.analyses.machine import Machine, Stuck
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.settings import Setting
from cake_verify.analyses.state import Bar, Cta, Found, Member, Undecided, World
from cake_verify.analyses.tiling import reader, tile_source


@record(eq=False)
class Entry:
    """One executed operation: its values, the scalars in scope, the bits it opened and the epoch it belongs to."""

    number: int
    member: Member
    op: Op
    values: tuple[Any, ...]
    scope: dict[str, Any]
    cur: int
    low: int
    high: int
    flying: tuple[tuple[int, dict[str, int]], ...]

    def bits(self, after: int = 0) -> int:
        """The bits under which its accesses are known."""
        return self.cur | ((1 << self.high) - (1 << self.low))


@dataclass(slots=True)
class Replay:
    """A logged run and how it ended: `found` or `stuck`, both None when it ran through."""

    plan: Plan
    setting: Setting
    world: World
    log: list[Entry] = field(default_factory=list)
    found: Found | None = None
    stuck: list[Member] | None = None

    # ------------------------------------------------------------ looking things up

    def effects(self, op: Op) -> tuple[Any, ...]:
        return effects_of(op, self.plan.program)

    def touches(self, op: Op) -> Iterator[tuple[str, str, str]]:
        """(operand, mode, proxy) of every access of shared memory by an operation."""
        for e in self.effects(op):
            for t in e.touches if isinstance(e, Issue) else (e,) if isinstance(e, Touch) else ():
                operand = op.operands.get(t.operand)
                if isinstance(operand, Expr) and isinstance(operand.type, ViewT):
                    yield t.operand, t.mode, "generic" if isinstance(e, Touch) or e.engine == "cp_async" else "async"

    def tmem_touches(self, op: Op) -> Iterator[tuple[str, str]]:
        """(operand, mode) of every access of tensor memory by an operation."""
        for e in self.effects(op):
            for t in e.touches if isinstance(e, Issue) else (e,) if isinstance(e, Touch) else ():
                operand = op.operands.get(t.operand)
                if region_of(operand) is not None:
                    yield t.operand, t.mode

    def touched(self, entry: Entry, atom: int, cta: Cta) -> Iterator[tuple[str, str, str]]:
        """The accesses of `atom` in `cta` among those of an executed operation."""
        here = self._reached(entry) is cta or (of_pair(self.plan.program, entry.op) and entry.member.cta.rank ^ 1 == cta.rank)
        for operand, mode, proxy in self.touches(entry.op):
            if not here and not entry.op.attrs.get("multicast"):
                continue
            atoms = self.plan.lookup(entry.op, operand)
            try:
                if atom in atoms[entry.values[self.plan.code.ops[entry.op.id].index[operand]]]:
                    yield operand, mode, proxy
            except Found:
                continue
        for operand, mode in self.tmem_touches(entry.op):
            if here:
                value = entry.values[self.plan.code.ops[entry.op.id].index[operand]]
                if atom in self.plan.columns(entry.op.operands[operand].type)[value]:  # type: ignore[union-attr, arg-type]  # tensor memory
                    yield operand, mode, "async"

    def _reached(self, entry: Entry) -> Cta:
        """The CTA whose shared memory an operation touches: its own, or the one that it sends to."""
        to = self.plan.code.ops[entry.op.id].index.get("cta") if entry.op.name == "send" else None
        return entry.member.cta if to is None else self.world.ctas[entry.values[to]]

    def is_a(self, op: Op, *kinds: type) -> bool:
        return any(isinstance(e, kinds) for e in self.effects(op))

    def last_write(self, atom: int, cta: Cta) -> tuple[Entry, str] | None:
        """The latest executed write of an atom, with the operand."""
        for entry in reversed(self.log):
            for operand, mode, _ in self.touched(entry, atom, cta):
                if "w" in mode:
                    return entry, operand
        return None

    def unknown_reader(self, atom: int, cta: Cta, missing: int) -> tuple[Entry, str] | None:
        """The latest read of an atom since its last write whose completion the writer does not know."""
        for entry in reversed(self.log):
            for operand, mode, _ in self.touched(entry, atom, cta):
                if "w" in mode:
                    return None
                if entry.bits() & missing:
                    return entry, operand
        return None

    def before(self, number: int, member: Member, *kinds: type, barrier: str | None = None) -> Entry | None:
        """The member's latest operation of a kind (on a barrier) in front of a point of the log."""
        for entry in reversed(self.log[:number]):
            if entry.member is member and self.is_a(entry.op, *kinds) and (barrier is None or entry.op.attrs.get("barrier") == barrier):
                return entry
        return None

    def drain(self, number: int, member: Member, engine: str) -> Entry | None:
        """The member's latest wait for groups of an engine in front of a point of the log."""
        for entry in reversed(self.log[:number]):
            if entry.member is member and any(isinstance(e, Drain) and e.engine == engine for e in self.effects(entry.op)):
                return entry
        return None

    def still_flying(self, at: Entry, read: Entry, operand: str) -> bool:
        """Whether the group of an asynchronous read was in flight at a later step of the same member."""
        value = read.values[self.plan.code.ops[read.op.id].index[operand]]
        view = read.op.operands[operand].type.view  # type: ignore[union-attr]  # callers name view operands
        return any(op == read.op.id and slots.get(view) == value[0] for op, slots in at.flying)

    def retired(self, drain: Entry) -> bool:
        """Whether a wait for groups ended the flight of any."""
        before = next((e for e in reversed(self.log[: drain.number]) if e.member is drain.member), None)
        return before is not None and len(before.flying) > len(drain.flying)

    def slot(self, op: Op, values: tuple[Any, ...]) -> int | None:
        """The slot count that an operation on a barrier names."""
        at = self.plan.code.ops[op.id].index.get("stage")
        return None if at is None else values[at]

    # ------------------------------------------------------------ suspicious steps

    def early_release(self) -> tuple[Entry, int] | None:
        """The first arrival that frees a slot which an asynchronous group of the member may still read, with that group's operation."""
        program = self.plan.program
        guards = guarded_loads(program)
        for entry in self.log:
            if not self.is_a(entry.op, Arrive) or entry.op.attrs["barrier"] not in guards:
                continue
            name = str(entry.op.attrs["barrier"])
            n = self.slot(entry.op, entry.values)
            views = {s.op.operands["view"].type.view for s in guards[name]}  # type: ignore[union-attr]  # loads have views
            for op_id, slots in entry.flying:
                stages = program.rings[program.barriers[name].pipeline].stages
                for view, slot in slots.items():
                    if n is not None and view in views and slot % stages == n % stages:
                        return entry, op_id
        return None

    def odd_phase(self) -> tuple[Entry, bool] | None:
        """The first arrival that lands in another phase than the one its slot belongs to, and whether it came too often (or too rarely before)."""
        given: dict[tuple[int, str, int, int], int] = {}
        for entry in self.log:
            if not self.is_a(entry.op, Arrive, Commit) or entry.op.attrs.get("barrier") not in self.plan.program.barriers:
                continue
            name = str(entry.op.attrs["barrier"])
            n = self.slot(entry.op, entry.values)
            if n is None:
                continue
            stages = self.plan.program.rings[self.plan.program.barriers[name].pipeline].stages
            key = (entry.member.number, name, n % stages, entry.member.cta.rank)
            if given.get(key, 0) != n // stages:
                return entry, given.get(key, 0) > n // stages
            given[key] = given.get(key, 0) + 1
        return None

    def gifts(self, bar: Bar) -> dict[int, int]:
        """How often each member has contributed to one barrier object, by member number; loads count once a slot."""
        name = self.plan.names[bar.decl]
        stages = self.plan.program.rings[self.plan.program.barriers[name].pipeline].stages
        targets, landings = self.plan.targets(name), self.plan.landings(name)
        out: dict[int, int] = {}
        armed: set[tuple[int, int]] = set()
        for entry in self.log:
            if entry.op.attrs.get("barrier") != name or self.is_a(entry.op, Wait):
                continue
            n = self.slot(entry.op, entry.values) or 0
            if n % stages != bar.stage:
                continue
            if self.is_a(entry.op, Issue):
                key = (entry.member.number, n)
                lands = self._reached(entry).rank if entry.op.name == "send" else landings[entry.member.cta.rank]
                if lands != bar.cta or key in armed:
                    continue
                armed.add(key)
            elif bar.cta not in targets[entry.member.cta.rank]:
                continue
            out[entry.member.number] = out.get(entry.member.number, 0) + 1
        return out


def replay(machine: Machine, setting: Setting, prefix: frozenset[str]) -> Replay:
    """Run a setting with a log."""
    world = start(machine, setting, prefix)
    r = Replay(machine.plan, setting, world)
    mark = 0
    slots: dict[int, dict[str, int]] = {}

    def write(event: Any) -> None:
        nonlocal mark
        m, values = event
        number = values[0]
        op = machine.plan.program.ops[number]
        groups = [*((g[0], g[3]) for g in m.mma), *m.bulk]
        if any(o == number and b not in slots for b, o in groups):
            bit = next(b for b, o in reversed(groups) if o == number)
            index = machine.plan.code.ops[number].index
            slots[bit] = {op.operands[name].type.view: values[index[name]][0] for name, _, _ in r.touches(op)}  # type: ignore[union-attr]  # views
        flying = tuple((o, slots.get(b, {})) for b, o in groups)
        r.log.append(Entry(len(r.log), m, op, values, m.variables(), m.cur | m.wcur, mark, world.top, flying))
        mark = world.top

    try:
        machine.run(world, write)
        check_exit(machine.plan, world)
    except Found as found:
        r.found = found
    except Stuck as stuck:
        r.stuck = stuck.members
    except Undecided:
        pass
    return r


def start(machine: Machine, setting: Setting, prefix: frozenset[str]) -> World:
    """A fresh world for a setting, with its members in place."""
    program = machine.plan.program
    world = machine.plan.world()
    world.values = reader(setting.lengths, prefix)
    extents = {
        (p.name, k): (e if isinstance(e, int) else int(setting.args.get(e, 1))) for p in program.tensors.values() for k, e in enumerate(p.extents)
    } if "extent" in words(program) else {}
    machine.members(world, setting.args, tile_source(program, setting, prefix), extents, setting.cluster)
    return world


__all__ = ["Drain", "Entry", "Replay", "Sync", "Turn", "replay", "start"]
