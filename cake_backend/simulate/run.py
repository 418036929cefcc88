"""One simulated run: the grid is laid out, warps and completions advance under a policy, and what went wrong is reported."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake_backend.simulate.deadlock import explain
from cake_backend.simulate.engines import Work
from cake_backend.simulate.faults import Abort, NotSimulated, label
from cake_backend.simulate.floats import Array
from cake_backend.simulate.grid import Grid, lay_out, scalar_arguments
from cake_backend.simulate.machine import Machine
from cake_backend.simulate.policies import Chooser, Policy, policy_named
from cake_backend.simulate.state import Cta, Warp
from cake_backend.simulate.tensors import Tensor, bind_tensors
from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_ir.tensor_modes import modes
from cake_ir.types import ViewT
from cake_ir.walk.agents import BLOCKED
from cake_ir.walk.code import RoleCode, compile_roles

LIMIT = 2_000_000


@dataclass(frozen=True, slots=True)
class SimResult:
    """What a run gave. `outputs` holds a copy of every tensor as the run left it; `events` counts operations and completions.

    `ok` says that the machine met no fault, not that the numbers are right: compare `outputs` with an oracle for that.
    """

    ok: bool
    outputs: dict[str, Array]
    faults: tuple[Fault, ...]
    events: int
    seconds: float
    policy: str
    seed: int


def simulate(
    program: Program,
    tensors: Mapping[str, Any],
    scalars: Mapping[str, int | float],
    *,
    ctas: int | None = None,
    policy: str | Policy = "canonical",
    seed: int = 0,
    limit: int = LIMIT,
    code: RoleCode | None = None,
) -> SimResult:
    """Run `program` once on copies of `tensors` (row-major, outermost axis first) with run-time `scalars`.

    `ctas` is the size of a persistent grid, rounded up to whole clusters (two clusters if left out); a grid of tiles has as many CTAs as
    tiles. `policy` and `seed` fix the interleaving, so equal calls give equal results. `limit` bounds the events. Faults are returned,
    never raised. `code` saves compiling the roles again when one program is run many times.
    """
    started = time.perf_counter()
    chosen = policy_named(policy) if isinstance(policy, str) else policy
    found: list[Fault] = []
    bound: dict[str, Tensor] = {}
    events = 0
    machine: Machine | None = None
    with np.errstate(all="ignore"):
        try:
            args = scalar_arguments(program, scalars)
            bound = bind_tensors(program, tensors, _dtypes_of_views(program))
            written = [bound[name] for name, how in modes(program).items() if how in ("out", "inout")]
            if written and not any(t.array.size for t in written):  # as the launcher: what writes nothing is not launched
                return SimResult(True, {name: t.array for name, t in bound.items()}, (), 0, time.perf_counter() - started, chosen.name, seed)
            code = code or compile_roles(program)
            chooser = Chooser(chosen, seed)
            machine = Machine(program, code, bound, chooser)
            grid = lay_out(machine, code, args, ctas)
            found = machine.faults
            events = _drive(machine, grid, limit)
        except Abort as exc:
            found = [*(machine.faults if machine else []), exc.fault]
        except NotSimulated as exc:
            found = [exc.fault]
    outputs = {name: t.array for name, t in bound.items()}
    return SimResult(not found, outputs, tuple(found), events, time.perf_counter() - started, chosen.name, seed)


def _dtypes_of_views(program: Program) -> dict[str, str]:
    """Dtypes of tensors that declare none, from the views they are copied to and from."""
    out: dict[str, str] = {}
    for op in program.ops:
        t = getattr(op.operands.get("view"), "type", None)
        if isinstance(t, ViewT) and op.attrs.get("tensor"):
            out.setdefault(str(op.attrs["tensor"]), t.dtype)
    return out


def _drive(m: Machine, grid: Grid, limit: int) -> int:
    """Advance everything to its end; the number of events. Raises `Abort` on a deadlock or past the limit."""
    events, chooser = 0, m.chooser
    warps = list(grid.warps)
    while True:
        actors = m.actors(warps)
        if not actors:
            break
        actor = chooser.choose(actors)
        if isinstance(actor, Work):
            m.complete(actor)
            events += 1
        else:
            done = _advance(m, actor, min(chooser.burst(actor), limit - events + 1))
            events += done
            if actor.ended:
                warps.remove(actor)
                _end_of_warp(m, actor)
        if events > limit:
            raise Abort(Fault("X010", f"the run has not ended after {limit} events", m.program.span, facts={"limit": limit}))
    if warps:
        raise Abort(explain(m, warps))
    return events


def _advance(m: Machine, warp: Warp, burst: int) -> int:
    """Let a warp execute at most `burst` operations; how many it did."""
    agent, done = warp.agent, 0
    while done < burst:
        event = agent.pending or agent.fetch()
        if event is None:
            warp.ended, warp.ready = True, False
            break
        result = m.step(warp, event)
        if result is BLOCKED:
            break
        agent.complete(result)
        done += 1
    return max(done, 1)


def _end_of_warp(m: Machine, warp: Warp) -> None:
    """When the last warp of a cluster ends, nothing that reads or writes its shared memory may be in flight."""
    cluster = warp.cta.cluster
    cluster.running -= 1
    if cluster.running:
        return
    for cta in cluster.by_rank.values():
        _in_flight(m, cta)


def _in_flight(m: Machine, cta: Cta) -> None:
    for work in cta.work:
        if work.kind == "tmem" or (not work.guards and (work.complete or work.kind in ("store", "mma"))):
            continue
        state = "was never waited for" if work.complete or (work.kind == "store" and work.done) else "is in flight"
        m.fault("X003", f"{label(work.op)} {state} when CTA {cta.number} ends", work.op, warp=work.warp)
        work.release()
