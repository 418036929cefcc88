"""The happens-before machine: every operation compiled to a step, and the canonical run that executes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from cake_ir.derive.acting import acting
from cake_ir.derive.pairs import runs
from cake_ir.ops import effects_of
from cake_ir.ops.effects import (
    Arrive,
    ClusterSync,
    Commit,
    Drain,
    FenceProxy,
    Flag,
    GridDependency,
    Issue,
    Sync,
    Touch,
    Turn,
    Wait,
)  # fmt: skip
from cake_ir.program import Expr, Op
from cake_ir.types import ScalarT
from cake_ir.walk.agents import BLOCKED
from cake_ir.walk.code import Context, Event
from cake_verify.analyses import steps_memory as memory
from cake_verify.analyses import steps_registers
from cake_verify.analyses import steps_send as sends
from cake_verify.analyses import steps_sync as synchronise
from cake_verify.analyses import steps_tensor as tensor
from cake_verify.analyses.plan import Plan, Step, view_type
from cake_verify.analyses.rows import check_rows
from cake_verify.analyses.state import Found, Member, Undecided, World
from cake_verify.analyses.steps_atomic import atomic_update
from cake_verify.analyses.steps_element import element_read

LIMIT = 30_000
"""Events of one run after which it is given up."""


_HOLDING = ("wgmma", "tmem_ld", "tmem_st")
"""Engines that hold registers."""


class Stuck(Exception):
    """No member can go on and some have not ended."""

    def __init__(self, members: list[Member]) -> None:
        super().__init__(f"{len(members)} members are blocked")
        self.members = members


class Machine:
    """All operations of a program as steps; `None` where executing one changes nothing that is checked."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        doers = acting(plan.program)
        self.held = {s.role for s in doers.get(Issue, ()) if any(isinstance(e, Issue) and e.engine in _HOLDING for e in self._effects(s.op))}
        self.dependent = any(isinstance(e, GridDependency) and e.kind == "wait" for s in doers.get(GridDependency, ()) for e in self._effects(s.op))
        self.steps: list[Step | None] = [self._compile(plan.sites[i].op, plan.sites[i].role) if i in plan.sites else None for i in range(len(plan.program.ops))]

    def _effects(self, op: Op) -> tuple[Any, ...]:
        return effects_of(op, self.plan.program)

    def _compile(self, op: Op, role: str) -> Step | None:
        effects = self._effects(op)
        if not effects and not isinstance(op.type, ScalarT):  # between registers, as most are
            return steps_registers.registers(self.plan, op, role in self.held)
        parts: list[Step] = []
        if not any([isinstance(e, Issue) and e.engine in _HOLDING for e in effects]):
            registers = steps_registers.registers(self.plan, op, role in self.held)
            if registers is not None:
                parts.append(registers)
        if self.dependent:
            upstream = synchronise.upstream(self.plan, op)
            if upstream is not None:
                parts.append(upstream)
        rows = check_rows(self.plan, op)
        if rows is not None:
            parts.append(rows)
        for effect in effects:
            step = self._one(op, role, effect)
            if step is not None:
                parts.append(step)
        if isinstance(op.type, ScalarT):
            return self._scalar(op, parts)
        if not parts:
            return None
        if len(parts) == 1:
            return parts[0]
        if any(isinstance(e, (Wait, Sync, ClusterSync)) for e in effects):
            return _in_stages(tuple(parts))
        return _both(*parts) if len(parts) == 2 else _in_stages(tuple(parts))

    def _one(self, op: Op, role: str, effect: Any) -> Step | None:
        plan = self.plan
        name = str(op.attrs.get("barrier") or op.attrs.get("sync") or "")
        match effect:
            case Wait():
                return synchronise.wait(plan, op, role)
            case Arrive():
                return synchronise.arrive(plan, op, role)
            case Issue():
                return self._issue(op, role, effect)
            case Sync():
                return synchronise.sync(plan, name, role)
            case ClusterSync():
                return synchronise.cluster_sync(plan, role)
            case Turn(kind="wait"):
                return synchronise.turn_wait(plan, name)
            case Turn():
                return synchronise.turn_arrive(plan, name)
            case FenceProxy():
                return synchronise.fence()
            case Drain():
                return synchronise.drain(plan, op, effect)
            case Commit(engine="cp_async"):
                return synchronise.commit_copies(op)
            case Commit():
                return synchronise.commit_tensor(plan, op, role)
            case Touch(space="smem", proxy="generic"):
                return self._touch(op, role, effect)
            case GridDependency(kind="wait"):
                return synchronise.grid_wait()
            case Flag(kind="signal"):
                return synchronise.signal()
        return None

    def _issue(self, op: Op, role: str, effect: Issue) -> Step | None:
        if effect.engine == "st_async":
            return sends.send(self.plan, op, role)
        if effect.done == "tx":
            return memory.load_tx(self.plan, op, role)
        if effect.engine == "bulk":
            return memory.store_bulk(self.plan, op)
        if effect.engine == "wgmma":
            return memory.mma_async(self.plan, op, effect)
        if effect.engine == "tcgen05":
            if op.name == "tmem_copy":
                return _both(memory.mma_async(self.plan, op, effect), tensor.copied(self.plan, op))
            issued, inner = memory.mma_async(self.plan, op, effect), tensor.tensor_operands(self.plan, op)
            return _both(issued if inner is None else _both(issued, inner), tensor.accumulator(self.plan, op))
        if effect.engine == "cp_async":
            return memory.copy_in(self.plan, op, role)
        return tensor.tensor_memory(self.plan, op, effect)

    def _touch(self, op: Op, role: str, effect: Touch) -> Step:
        make = memory.generic_read if effect.mode == "r" else memory.generic_write
        if effect.mode == "rw":
            return atomic_update(self.plan, op, effect.operand)
        if effect.operand == "scratch" and effect.mode == "w":
            return self._scratch(op, role)
        if op.name == "ld":
            return element_read(self.plan, op, role)
        return make(self.plan, op, effect.operand)

    def _scratch(self, op: Op, role: str) -> Step:
        """Each member of a reduction across warps writes the slots of its own warps."""
        r = self.plan.program.roles[role]
        t = view_type(op, "scratch")
        steps = []
        for member in range(r.members):
            lo, n = member * r.member_warps, r.member_warps
            if t.rank == 1:
                atoms = self.plan.lookup(op, "scratch", col=lo, cols=min(n, max(1, t.cols - lo)))
            else:
                atoms = self.plan.lookup(op, "scratch", row=lo, rows=min(n, max(1, t.rows - lo)))
            steps.append(memory.generic_write(self.plan, op, "scratch", atoms))

        def step(m: Member, v: tuple[Any, ...]) -> Any:
            return steps[m.index](m, v)

        return step

    def _scalar(self, op: Op, parts: list[Step]) -> Step:
        """An operation whose result is a uniform scalar: the setting says what it reads."""
        tensor = str(op.attrs.get("tensor", ""))
        at, number = self.plan.code.ops[op.id].index.get("i"), op.id

        def step(m: Member, v: tuple[Any, ...]) -> Any:
            for part in parts:
                part(m, v)
            i = 0 if at is None else v[at]
            m.lds[number] = i
            return m.world.values(tensor, i)

        return step

    # ------------------------------------------------------------ running

    def members(self, world: World, arguments: dict[str, Any], tiles: Callable[[str, int], Iterable[tuple[int, ...]]], extents: Any, cta: int = 0) -> None:
        """Put every role member of every CTA of the cluster into the world."""
        plan = self.plan
        cx = plan.cluster[0]
        for c in world.ctas:
            for role, make in plan.code.roles.items():
                if not runs(plan.program, role, c.rank):
                    continue
                record = plan.program.roles[role]

                def of_rank(name: str, rank: int = c.rank) -> Iterable[tuple[int, ...]]:
                    return tiles(name, rank)

                for i in range(record.members):
                    context = Context(arguments, i, (c.rank % cx, c.rank // cx), plan.cluster, cta * plan.ranks + c.rank, extents, of_rank)
                    world.members.append(Member(len(world.members), role, i, c, make(context), role in plan.issuers, world))

    def run(self, world: World, log: Callable[[tuple[Member, Event]], object] | None = None, limit: int = LIMIT, logged: Iterable[int] | None = None) -> None:
        """Run all members, each until it blocks, in a fixed order. Raises `Found`, `Stuck` or `Undecided`.

        `log` is told every operation that was executed, or those of `logged`.
        """
        steps = [*self.steps, None]  # event -1, an iteration without an operation, takes the last one
        if log is not None:
            for i in range(len(self.steps)) if logged is None else logged:
                steps[i] = _logged(steps[i], log)
        running = list(world.members)
        events = 0
        while running:
            before = events
            for m in running:
                body, event = m.body, m.pending
                try:
                    while True:
                        # most operations give their member no answer: its program goes on by itself from where it was blocked, or got one
                        for event in body if event is None else chain((event,), body):  # noqa: B020 - what is left of the program
                            step = steps[event[0]]
                            if step is not None and (reply := step(m, event)) is not None:
                                break
                            events += 1
                            if events > limit:
                                raise _too_long(m, event[0], limit)
                        else:
                            m.done, m.pending = True, None
                            break
                        if reply is BLOCKED:
                            m.pending = event
                            break
                        events += 1
                        if events > limit:
                            raise _too_long(m, event[0], limit)
                        event = body.send(reply)
                except StopIteration:
                    m.done, m.pending = True, None
                except Found as found:
                    found.member, m.pending = m, event
                    raise
                except ArithmeticError as error:
                    raise Undecided(f"`{m.role}` computes a number that does not exist ({error})", role=m.role) from None
                finally:
                    world.events = events
            running = [m for m in running if not m.done]
            if running and events == before:
                raise Stuck(running)


def _too_long(m: Member, number: int, limit: int) -> Undecided:
    return Undecided(f"after {limit:,} operations `{m.role}` had come to here", number if number >= 0 else None, m.role)


def _logged(step: Step | None, log: Callable[[tuple[Member, Event]], object]) -> Step:
    """A step that tells when it was executed."""
    if step is None:

        def told(m: Member, v: Event) -> Any:
            log((m, v))

        return told

    def logged(m: Member, v: Event) -> Any:
        reply = step(m, v)
        if reply is not BLOCKED:
            log((m, v))
        return reply

    return logged


def _both(first: Step, second: Step) -> Step:
    def step(m: Member, v: tuple[Any, ...]) -> Any:
        first(m, v)
        return second(m, v)

    return step


def _in_stages(parts: tuple[Step, ...]) -> Step:
    """Several effects in order, any of which may block; the member remembers how far it has come."""
    last = len(parts)

    def step(m: Member, v: tuple[Any, ...]) -> Any:
        while m.pc < last:
            if parts[m.pc](m, v) is BLOCKED:
                return BLOCKED
            m.pc += 1
        m.pc = 0
        return None

    return step


__all__ = ["LIMIT", "Expr", "Found", "Machine", "Stuck"]
