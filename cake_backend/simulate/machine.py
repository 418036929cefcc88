"""The machine: executes evaluated operations of warps, step by step, and owns every piece of state that they share.

An operation becomes a list of steps, read from its effects: synchronisation effects are executed here the same for every operation, and
what lies between them (touching memory, issuing work, computing) is the operation's own values, found by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake_backend.simulate import derived, roles
from cake_backend.simulate.barriers import Gate, OverArrival
from cake_backend.simulate.engines import Work
from cake_backend.simulate.faults import HELP, Abort, label
from cake_backend.simulate.floats import Array, poison
from cake_backend.simulate.memory import Cells, Misaligned, OutsideView, Placement, Pool
from cake_backend.simulate.policies import Actor, Chooser
from cake_backend.simulate.registers import shape_of
from cake_backend.simulate.state import Cta, Warp
from cake_backend.simulate.tensors import Tensor
from cake_ir.derive.issue import issue_roles
from cake_ir.fault import Fault
from cake_ir.ops import effects_of, spec_of
from cake_ir.ops.effects import Flag, Issue, Touch
from cake_ir.program import Op, Program, Role, statements
from cake_ir.program import op_of as op_of_statement
from cake_ir.span import Span
from cake_ir.types import FragT, PairT, Type
from cake_ir.walk.agents import BLOCKED
from cake_ir.walk.code import OpCode, RoleCode

Vals = tuple[Any, ...]
Step = Callable[[Warp, Vals], Any]
Note = tuple[Op, str]
MAX_FAULTS = 12


@dataclass(frozen=True, slots=True)
class Site:
    """Where an operation stands: what its values are built from. `result` is the place that it writes."""

    machine: Machine
    op: Op
    code: OpCode
    role: Role
    result: str | None

    @property
    def width(self) -> int:
        """Warps of the member that executes it."""
        return self.role.member_warps


class Machine:
    """State and steps of one run."""

    def __init__(self, program: Program, code: RoleCode, tensors: Mapping[str, Tensor], chooser: Chooser) -> None:
        self.program = program
        self.tensors = tensors
        self.chooser = chooser
        self.placement = Placement(program)
        self.rings = derived.view_rings(program)
        self.phases = derived.phases(program)
        self.faults: list[Fault] = []
        self.notes: list[Note] = []
        self.seen: set[Any] = set()
        self.work: list[Work] = []
        self.ctas: list[Cta] = []
        self.issue_only = issue_roles(program)
        self.flags: dict[tuple[str, int], Gate] = {}
        self.upstream: Work | None = None
        # Blocks that follow each other by flags may write what another has written; where they do not, the numbers show it.
        self.flagged = any(isinstance(e, Flag) for op in program.ops for e in effects_of(op, program))
        owners = {op.id: program.roles[b.role] for b in program.body for s in statements(b.body) if (op := op_of_statement(s)) is not None}
        places = derived.result_places(program)
        # Every operation is prepared before anything runs, so that a refusal does not depend on the arguments.
        self.steps: dict[int, tuple[Step, ...]] = {
            c.op.id: self._steps(Site(self, c.op, c, owners[c.op.id], places.get(c.op.id))) for c in code.ops
        }

    # ------------------------------------------------------------ operations

    def _steps(self, site: Site) -> tuple[Step, ...]:
        from cake_backend.simulate.table import SYNC, values_of

        op = site.op
        key = spec_of(op).spelling
        parts = list(values_of(key))
        steps: list[Step] = []
        inside = False
        for e in effects_of(op, self.program):
            if isinstance(e, (Touch, Issue)):
                if not inside:
                    steps.append(parts.pop(0)(site))
                inside = True
                continue
            inside = False
            steps.append(SYNC[type(e)](site, e))
        steps.extend(make(site) for make in parts)
        return tuple(steps)

    def step(self, warp: Warp, event: Vals) -> Any:
        """Execute one operation of a warp as far as it goes; its scalar result or None, `BLOCKED` if it has to wait."""
        if event[0] < 0:
            return roles.execute(self, warp, event[0])
        steps = self.steps[event[0]]
        result = None
        while warp.at_step < len(steps):
            result = steps[warp.at_step](warp, event)
            if result is BLOCKED:
                return BLOCKED
            warp.at_step += 1
        warp.at_step = 0
        return result

    def block(self, warp: Warp, gate: Gate, why: str) -> Any:
        """Put a warp to sleep until `gate` changes; `why` says what it waits for."""
        warp.ready = False
        warp.waits_for = (why, gate)
        gate.waiters.append(warp)
        return BLOCKED

    # ------------------------------------------------------------ asynchronous work

    def submit(self, work: Work) -> None:
        """Put a piece of work in flight."""
        self.chooser.enter(work)
        self.work.append(work)
        mine = work.warp.cta.work
        if len(mine) > 64:
            mine[:] = [w for w in mine if w.guards or not w.complete]
        mine.append(work)

    def complete(self, work: Work) -> None:
        """Make the next step of a piece of work."""
        work.run(work)
        work.done += 1
        if work.complete:
            self.work.remove(work)
        work.gate.wake()

    def actors(self, warps: list[Warp]) -> list[Actor]:
        """Everything that can go now."""
        out: list[Actor] = [w for w in warps if w.ready]
        out += [w for w in self.work if w.ready]
        return out

    # ------------------------------------------------------------ faults

    def fault(
        self,
        code: str,
        message: str,
        op: Op,
        *,
        warp: Warp | None = None,
        other: Op | None = None,
        key: Any = None,
        note: Note | None = None,
        **facts: Any,
    ) -> None:
        """Report a fault once a place; past a dozen the run ends."""
        mark = (code, op.id, other.id if other else None, key)
        if mark in self.seen:
            return
        self.seen.add(mark)
        self.faults.append(self.located(code, message, op, warp=warp, other=other, note=note, **facts))
        if len(self.faults) >= MAX_FAULTS:
            raise Abort(self.faults.pop())

    def located(
        self, code: str, message: str, op: Op, *, warp: Warp | None = None, other: Op | None = None, note: Note | None = None, **facts: Any
    ) -> Fault:
        """A fault at an operation, with the warp's place and loop variables as facts and trace."""
        trace: tuple[str, ...] = ()
        if warp is not None:
            facts = {"role": warp.role.name, "member": warp.member, "warp": warp.warp, "cta": warp.cta.number, **facts}
            trace = (f"{warp.name} of CTA {warp.cta.number}{variables(warp)}",)
        related = ((other.span, f"{label(other)} is in flight"),) if other is not None else ()
        if note is not None:
            related = (*related, (note[0].span, note[1]))
        return Fault(code, message, op.span, related=related, help=HELP.get(code, ""), facts=facts, trace=trace)

    def over_arrival(self, site: Site, warp: Warp, name: str, stage: int, exc: OverArrival) -> Abort:
        """The fault for an arrival that its barrier did not expect."""
        return Abort(
            self.located(
                "X002", f"`{name}` stage {stage} receives more arrivals than the {derived.expected_arrivals(self.program, self.program.barriers[name])} of a phase",
                site.op, warp=warp, barrier=name, stage=stage,
            )
        )  # fmt: skip

    def note(self, op: Op, what: str) -> None:
        """Remember that undefined data was read; it is a fault only where such data reaches an output."""
        if len(self.notes) < 64 and all(o is not op for o, _ in self.notes):
            self.notes.append((op, what))

    def hazard(self, site: Site, warp: Warp, pool: Pool, cells: Cells, mode: str, what: str) -> None:
        """Report an access (`mode` r or w) to bytes that work in flight still reads or writes."""
        writing = bool(pool.writing[cells.granules].any())
        if not writing and not (mode == "w" and pool.reading[cells.granules].any()):
            return
        for w in self.work + [g for cta in self.ctas for g in cta.work if g.guards]:
            for p, c, m in w.guards:
                if p is pool and (m == "w" or mode == "w") and np.intersect1d(c.granules, cells.granules, assume_unique=True).size:
                    verb = "writes" if mode == "w" else "reads"
                    doing = "are still being written" if m == "w" else "are still being read"
                    self.fault("X004", f"{label(site.op)} {verb} {what} that {doing} by {label(w.op)}", site.op, warp=warp, other=w.op)
                    return

    def outside(self, site: Site, warp: Warp, exc: OutsideView | Misaligned) -> Abort:
        """The fault for a rectangle outside its view, or not aligned as its user needs."""
        if isinstance(exc, Misaligned):
            return Abort(self.located("X015", f"{label(site.op)} uses a misaligned view, {exc}", site.op, warp=warp))
        return Abort(self.located("X006", f"{label(site.op)} reaches {exc}", site.op, warp=warp))

    def reach(self, site: Site, warp: Warp, tensor: Tensor) -> None:
        """Report an access of global memory that the upstream kernel may still be using."""
        if self.upstream is not None and not self.upstream.complete and not self.program.tensors[tensor.name].const:
            self.fault(
                "X014",
                f"{label(site.op)} touches `{tensor.name}` while the upstream kernel may still be running",
                site.op,
                warp=warp,
                key=tensor.name,
            )

    def copied(self, site: Site, warp: Warp, tensor: Tensor, at: Any) -> None:
        """Report a copy by the async proxy of elements whose ordinary stores are not fenced for it."""
        if tensor.unfenced is not None and tensor.unfenced[at].any():
            message = f"the async proxy reads `{tensor.name}` before ordinary stores to it are visible there: no `lm.fence_proxy` lies between"
            self.fault("X008", message, site.op, warp=warp, key=tensor.name)

    # ------------------------------------------------------------ registers

    def fresh(self, warp: Warp, t: Type) -> Any:
        """Registers of a type that nothing was written to."""
        if isinstance(t, PairT):
            return (self.fresh(warp, t.value), self.fresh(warp, t.index))
        assert isinstance(t, FragT)
        one = poison(shape_of(t, warp.width, warp.warp), t.dtype)
        return [one] * t.stages if t.stages > 1 else one

    def read_place(self, warp: Warp, name: str, stage: int, op: Op) -> Any:
        """The value of a place; a hazard if a matrix multiplication in flight writes it."""
        busy = warp.busy.get((name, stage))
        if busy is not None and busy[0]:
            self.fault(
                "X005", f"`{name}` is read while a matrix multiplication or load that writes it is in flight", op, warp=warp, key=name
            )
        if name in warp.unwritten:
            self.note(op, f"`{name}` is read before anything was written to it")
        value = warp.regs[name]
        return value[stage] if isinstance(value, list) else value

    def write_place(self, warp: Warp, name: str, value: Any, op: Op, stage: int = 0) -> None:
        """Bind a place to a new value; a hazard if a matrix multiplication in flight reads or writes it."""
        busy = warp.busy.get((name, stage))
        if busy is not None and (busy[0] or busy[1]):
            self.fault("X005", f"`{name}` is written while a matrix multiplication that uses it is in flight", op, warp=warp, key=name)
        warp.regs[name] = value
        warp.unwritten.discard(name)

    # ------------------------------------------------------------ global memory

    def put(self, site: Site, warp: Warp, tensor: Tensor, at: Any, raw: Array) -> None:
        """Write bits to a tensor, watching for poison and for other CTAs' values."""
        if self.notes and tensor.has_nan(raw):
            first = self.notes[0]
            self.fault("X007", f"undefined data reaches `{tensor.name}`: {first[1]}", site.op, warp=warp, key=tensor.name, note=first)
        if site.op.name == "store":
            tensor.stored(at, warp.cta.number)
        if tensor.put(at, raw, warp.cta.number) and not self.flagged:
            self.fault(
                "X009",
                f"{label(site.op)} writes elements of `{tensor.name}` to which another CTA has written other values",
                site.op,
                warp=warp,
            )


def variables(warp: Warp) -> str:
    """Loop counters and the like where a warp stands, for messages."""
    body: Any = warp.agent.body
    while getattr(body, "gi_yieldfrom", None) is not None:
        body = body.gi_yieldfrom
    frame = getattr(body, "gi_frame", None)
    local = {k[2:]: v for k, v in frame.f_locals.items() if k.startswith("v_")} if frame is not None else {}
    found = {k: v for k, v in local.items() if isinstance(v, (int, float)) or (isinstance(v, tuple) and len(v) <= 5)}
    return " at " + ", ".join(f"{k}={v}" for k, v in list(found.items())[:8]) if found else ""


def span_of(op: Op, name: str) -> Span:
    """Where an argument of an operation stands."""
    return op.spans.get(name, op.span)
