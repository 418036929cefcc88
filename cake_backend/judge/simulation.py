"""Numbers without a GPU: the task's small shapes through the simulator, under several interleavings, against the same oracle."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.binding import TensorLayout
from cake_backend.expressions import evaluate, evaluate_int
from cake_backend.judge.check import Reference
from cake_backend.judge.device.buffers import poison_pattern
from cake_backend.judge.domain import Domain, assumptions
from cake_backend.judge.numerics import count_poison
from cake_backend.judge.plan import SEED_BITS, Options, drawn_shapes, empty, wanted_shapes
from cake_backend.judge.routine import Routine
from cake_backend.judge.status import Status
from cake_backend.manifest import DTYPE_BYTES
from cake_backend.task import Shape, Task, numpy_dtype

if TYPE_CHECKING:
    from cake_ir.fault import Fault
    from cake_ir.program import Program

Array = np.ndarray[Any, Any]

MAX_BYTES = 64 * 2**20  # inputs beyond this are nothing for a simulator

# What a fault of the simulated machine means for the candidate; every other code is a run-time error.
FAULT_STATUS: dict[str, Status] = {
    "X001": Status.HANG,
    "X003": Status.DEFERRED_WORK,
    "X004": Status.NONDETERMINISTIC,
    "X005": Status.NONDETERMINISTIC,
    "X006": Status.OUT_OF_BOUNDS,
    "X007": Status.INCORRECT_NUMERICAL,
    "X008": Status.NONDETERMINISTIC,
    "X009": Status.NONDETERMINISTIC,
    "X010": Status.TIMEOUT,
    "X011": Status.UNDECIDED,
    "X013": Status.STATIC_REJECT,
    "X014": Status.NONDETERMINISTIC,
    "X015": Status.STATIC_REJECT,
    "X016": Status.STATIC_REJECT,
}
BAD_INPUT = "X013"
"""An argument that does not fit the parameter: the schedule cannot be bound to the task at all."""


@dataclass(slots=True)
class Simulated:
    """The outcome over all cases; `cases` is empty where nothing could be simulated."""

    status: Status = Status.UNDECIDED
    summary: str = "nothing was simulated"
    cases: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        wrong = [c for c in self.cases if c["status"] != Status.PASSED_UNTIMED]
        return {
            "label": "simulated", "ok": bool(self.cases) and not wrong, "cases": self.cases, "wrong": len(wrong),
            "seconds": round(self.seconds, 3),
        }  # fmt: skip


def simulate_cases(
    candidate: Routine | Program,
    task: Task,
    options: Options,
    *,
    cancel: threading.Event | None = None,
    progress: Callable[[float], None] | None = None,
    rng: random.Random | None = None,
    domain: Domain | None = None,
) -> Simulated:
    """Run the plan below until something is wrong, everything is done or the budget is spent.

    The first small shape sees every distribution under the canonical order, then the other orders see the first distribution;
    further shapes see one order and one distribution each. Each case has a fresh seed.
    """
    out = Simulated()
    begun = time.monotonic()
    draw = rng or random.Random(secrets.randbits(128))
    routine = candidate if isinstance(candidate, Routine) else Routine.of(candidate)
    domain = domain or Domain(task, guards=assumptions(routine))
    trials = _trials(routine, task, options, draw, domain)
    if not trials:
        out.summary = "the candidate's parameters and assumptions leave no small shape of the task to simulate"
        return out
    for n, (shape, distribution, policy) in enumerate(trials):
        if cancel is not None and cancel.is_set():
            out.status, out.summary = Status.CANCELLED, "stopped on request"
            break
        if n and time.monotonic() - begun > options.simulate_budget:
            out.findings.append({"kind": "budget", "text": f"{len(trials) - n} of {len(trials)} simulated cases were left out for time"})
            break
        if progress is not None:
            progress(n / len(trials))
        case, faults = run_case(routine, task, shape, distribution, policy, draw.getrandbits(SEED_BITS), draw.getrandbits(12))
        case["case"] = f"s{n:03d}"
        out.cases.append(case)
        out.findings += faults
        if case["status"] != Status.PASSED_UNTIMED:
            out.status, out.summary = Status(case["status"]), case["summary"]
            break
    else:
        out.status = Status.PASSED_UNTIMED
    if out.status is Status.UNDECIDED and out.cases and all(c["status"] == Status.PASSED_UNTIMED for c in out.cases):
        out.status = Status.PASSED_UNTIMED
    if out.status is Status.PASSED_UNTIMED:
        out.summary = f"right on {len(out.cases)} simulated cases; no GPU was there to run or time it"
    out.seconds = time.monotonic() - begun
    return out


def _trials(routine: Routine, task: Task, options: Options, draw: random.Random, domain: Domain) -> list[tuple[Shape, str, str]]:
    """(shape, distribution, order). `late` shows most faults, so it is always among the orders; the others are drawn."""
    from cake_backend.simulate import adversaries

    shapes = _small_shapes(routine, task, options, draw, domain)
    names = [d.name for d in task.distributions if not options.distributions or d.name in options.distributions]
    if not shapes or not names:
        return []
    known = dict.fromkeys(p.name for program in routine.programs for p in adversaries(program))
    orders = [name for name in known if name not in ("canonical", "late")]
    policies = ["late", *draw.sample(orders, min(len(orders), max(0, options.policies - 1)))][: max(0, options.policies)]
    trials = [(shapes[0], names[0], "canonical")]
    trials += [(shapes[0], names[0], p) for p in policies]
    trials += [(s, names[0], "canonical") for s in shapes[1:]]
    trials += [(shapes[0], n, "canonical") for n in names[1:]]
    return trials


def _small_shapes(routine: Routine, task: Task, options: Options, draw: random.Random, domain: Domain) -> list[Shape]:
    """Shapes to simulate: the task's own small ones; where the candidate takes none, the smallest other or one from the domain."""
    taken = [s for s in wanted_shapes(task, routine.tunables, options) if domain.covers(s)]
    if small := [s for s in taken if s.kind == "sim"]:
        return small
    if not options.shapes:
        taken += drawn_shapes(task, routine.tunables, 64, draw, domain.covers)  # the smallest of many is a small one
    taken = [s for s in taken if not empty(task, s)]  # no work is the least of all, and shows nothing
    least = min(taken, key=lambda s: task.work(s.axes)["flops"], default=None)
    return [least] if least is not None and task.work(least.axes)["bytes_read"] <= MAX_BYTES else []


@dataclass(slots=True)
class Outcome:
    """What a simulated routine left behind: arrays by argument name, and the faults of the launch that met any."""

    outputs: dict[str, Array]
    faults: tuple[Fault, ...] = ()
    events: int = 0
    seconds: float = 0.0


def simulate_routine(routine: Routine, tensors: Mapping[str, Array], scalars: Mapping[str, Any], *, policy: str, seed: int, pattern: int) -> Outcome:
    """Every launch in order on copies of the arguments, over poisoned workspaces; a fault ends it."""
    from cake_backend.simulate import adversaries, simulate

    arrays = {name: array.copy() for name, array in tensors.items()}
    for space in routine.workspaces:
        arrays[space.name] = _poisoned(tuple(evaluate_int(e, scalars) for e in space.shape), space.dtype, pattern)
    out = Outcome(arrays)
    for call in routine.calls:
        for name in call.clears:
            arrays[name] = np.zeros_like(arrays[name])
        layouts = {n: TensorLayout.dense(a.shape, "u8") for n, a in arrays.items()}
        values = {n: evaluate(e, scalars, layouts) for n, e in call.scalars.items()}
        order = policy if policy in {p.name for p in adversaries(call.program)} else "canonical"  # another launch's role starves
        made = simulate(call.program, {n: arrays[bound] for n, bound in call.tensors.items()}, values, policy=order, seed=seed)
        out.faults, out.events, out.seconds = made.faults, out.events + made.events, out.seconds + made.seconds
        arrays |= {bound: made.outputs[n] for n, bound in call.tensors.items() if n in made.outputs}
        if made.faults:
            break
    return out


def run_case(
    routine: Routine, task: Task, shape: Shape, distribution: str, policy: str, seed: int, poison: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One simulated run: its case record (as for a measured one) and the faults that the machine met."""
    inputs = task.inputs(shape.axes, task.distribution(distribution), seed)
    layouts = task.layouts(shape.axes)
    pattern = poison_pattern(poison)
    tensors: dict[str, Array] = {}
    for name in routine.tensors:
        spec = task.tensors[name]
        tensors[name] = inputs[name] if spec.mode != "out" else _poisoned(layouts[name].shape, spec.dtype, pattern)
    scalars = {n: v for n, v in task.scalar_values(shape.axes).items() if n in routine.scalars}
    result = simulate_routine(routine, tensors, scalars, policy=policy, seed=seed & 0x7FFFFFFF, pattern=pattern)
    case: dict[str, Any] = {
        "status": Status.PASSED_UNTIMED.value, "summary": "", "shape": shape.name, "axes": dict(shape.axes), "distribution": distribution,
        "policy": policy, "seed": seed, "heldout": False, "events": result.events, "seconds": round(result.seconds, 3), "outputs": {},
    }  # fmt: skip
    where = f"`{shape.name}` with `{distribution}` data, order `{policy}`"
    findings = [_finding(f) for f in result.faults[:4]]
    if result.faults:
        first = result.faults[0]
        case["status"] = FAULT_STATUS.get(first.code, Status.RUNTIME_ERROR).value
        told = "bad input for" if first.code == BAD_INPUT else "simulated"
        case["summary"] = f"{told} {where}, line {first.span.line}: [{first.code}] {first.message}"
        return case, findings
    modified = [n for n in tensors if task.tensors[n].mode == "in" and result.outputs[n].tobytes() != inputs[n].tobytes()]
    outputs = {n: result.outputs[n] for n in tensors if task.tensors[n].mode != "in"}
    verdicts = Reference(task, shape.axes, inputs, None).compare(outputs, task.distribution(distribution))
    case["outputs"] = {n: v.to_json() for n, v in verdicts.items()}
    case["unwritten"] = {
        n: count for n, a in outputs.items() if (count := count_poison(a.tobytes(), pattern, DTYPE_BYTES[task.tensors[n].dtype]))
    }
    if modified:
        case["status"], case["summary"] = Status.INPUT_MODIFIED.value, f"input `{modified[0]}` was changed in {where}"
    for name, verdict in verdicts.items():
        if not verdict.ok and case["status"] == Status.PASSED_UNTIMED:
            told = f", {case['unwritten'][name]} never written" if name in case["unwritten"] else ""
            case["status"] = Status.INCORRECT_NUMERICAL.value
            case["summary"] = f"output `{name}` is wrong for {where}: {verdict.reason}{told}"
    return case, findings


def _poisoned(shape: tuple[int, ...], dtype: str, pattern: int) -> Array:
    """An array whose bytes are the 32-bit pattern over and over, as on the device."""
    want = numpy_dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64)) * want.itemsize
    words = np.full(-(-count // 4), pattern, np.uint32)
    return words.view(np.uint8)[:count].view(want).reshape(shape)


def _finding(fault: Fault) -> dict[str, Any]:
    return {
        "kind": "simulator", "code": fault.code, "line": fault.span.line, "text": fault.message, "trace": list(fault.trace), "help": fault.help,
    }  # fmt: skip
