"""One candidate on one GPU: data to files, a worker process, and what came back, as evidence for the verdict."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cake_backend.binding import BindError, bind
from cake_backend.executors.local import WorkerRun, run_worker
from cake_backend.judge import hangs
from cake_backend.judge.plan import Case, Options, Plan
from cake_backend.judge.protocol import FIRST, HANG, LAST, TIMED, ProtocolError, read_events, write_request
from cake_backend.manifest import Manifest
from cake_backend.task import Task, numpy_dtype

if TYPE_CHECKING:
    from cake_backend.judge.cycles import Twin

Array = np.ndarray[Any, Any]
Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Further:
    """Another schedule of a plan: its cubin and the author's names."""

    cubin: bytes
    roles: tuple[str, ...] = ()
    barriers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A compiled routine: what the worker loads, how it is launched, and the author's names for reports.

    `roles` and `barriers` are those of the first cubin; a plan has `more`. `unordered` holds lines of sums without an order: the bits
    of their results may differ from run to run. `twin` counts the cycles of timed cases, where there is one.
    """

    cubin: bytes
    manifest: Manifest
    params: Mapping[str, Any] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    barriers: tuple[str, ...] = ()
    more: tuple[Further, ...] = ()
    unordered: tuple[int, ...] = ()
    twin: Twin | None = None

    @property
    def cubins(self) -> tuple[bytes, ...]:
        """All cubins, by number."""
        return (self.cubin, *(m.cubin for m in self.more))

    def names(self, launch: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Roles and barriers of the schedule that a launch runs."""
        module = self.manifest.launches[launch].module if launch < len(self.manifest.launches) else 0
        return (self.more[module - 1].roles, self.more[module - 1].barriers) if module else (self.roles, self.barriers)


@dataclass(slots=True)
class Session:
    """Raw evidence of one run: events, output bytes by case, and how the process ended.

    `later` holds, by (case, file end), outputs of later launches of candidates whose bits may differ.
    """

    plan: Plan
    bound: dict[str, dict[str, Any]]
    run: WorkerRun | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    outputs: dict[str, dict[str, bytes]] = field(default_factory=dict)
    later: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    hang: list[hangs.HangRecord] = field(default_factory=list)
    hang_launch: int = 0
    protocol_error: str | None = None
    bind_error: BindError | None = None
    bind_case: Case | None = None

    def of(self, event: str, case: str | None = None) -> list[dict[str, Any]]:
        """Events of one kind, of one case where given."""
        return [e for e in self.events if e["event"] == event and (case is None or e.get("case") == case)]

    def unfinished(self) -> Case | None:
        """The first case that has not run as often as planned, or that was being timed when the worker ended."""
        for case in self.plan.cases:
            if len(self.of("run", case.id)) < case.repeats or (case.timed and not self.of("timing", case.id)):
                return case
        return None


def scratch_folder(need: int) -> Path:
    """A new folder for bulk data: in memory where that has room for twice the need, else on disk."""
    shm = Path("/dev/shm")
    if shm.is_dir() and os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 2 * need:
        return Path(tempfile.mkdtemp(prefix="cake-run-", dir=shm))
    return Path(tempfile.mkdtemp(prefix="cake-run-"))


def bind_case(candidate: Candidate, task: Task, case: Case) -> dict[str, Any]:
    """The concrete launches of one case; BindError where the candidate cannot take it.

    Whether a tensor is read, written or both is the task's word: a candidate that only reads an output leaves it poisoned, and one that
    writes an input is seen.
    """
    layouts = task.layouts(case.shape.axes)
    bound = bind(candidate.manifest, layouts, task.scalar_values(case.shape.axes))
    for name, spec in bound["tensors"].items():
        if name in task.tensors:
            spec["mode"] = task.tensors[name].mode
    return bound


def run_session(
    candidate: Candidate,
    task: Task,
    plan: Plan,
    options: Options,
    *,
    device: int = 0,
    progress: Progress | None = None,
    cancel: threading.Event | None = None,
    python: str | None = None,
) -> Session:
    """Carry out a plan. Whatever happens in the worker ends up in the Session; only a busy device raises (LeaseTimeout)."""
    session = Session(plan, {})
    for case in plan.cases:
        try:
            session.bound[case.id] = bind_case(candidate, task, case)
        except BindError as error:
            session.bind_error, session.bind_case = error, case
            return session
    need = sum(t["nbytes"] for b in session.bound.values() for t in b["tensors"].values())
    folder = scratch_folder(need)
    try:
        _write(folder, candidate, task, plan, options, session, device, progress)
        if cancel is not None and cancel.is_set():
            return session
        if progress is not None:
            progress("waiting for the GPU", 0.3)

        def tick() -> None:
            if progress is not None:
                done = len({e["case"] for e in _quiet_events(folder) if e["event"] == "run"})
                progress(f"running case {done} of {len(plan.cases)}", 0.3 + 0.5 * done / max(1, len(plan.cases)))

        session.run = run_worker(
            folder, device=device, timeout=options.run_timeout, lease_timeout=options.lease_timeout, cancel=cancel, tick=tick,
            python=python,
        )  # fmt: skip
        _collect(folder, session)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return session


def case_inputs(task: Task, case: Case) -> dict[str, Array]:
    """The case's input tensors; the same seed gives the same bytes."""
    return task.inputs(case.shape.axes, task.distribution(case.distribution), case.seed)


def _write(
    folder: Path, candidate: Candidate, task: Task, plan: Plan, options: Options, session: Session, device: int,
    progress: Progress | None,
) -> None:  # fmt: skip
    specs = []
    for n, case in enumerate(plan.cases):
        if progress is not None:
            progress(f"making data for `{case.shape.name if not case.heldout else 'a held-out shape'}`", 0.25 * n / len(plan.cases))
        place = folder / case.id
        place.mkdir(parents=True)
        bound = session.bound[case.id]
        for name, array in case_inputs(task, case).items():
            if name in bound["tensors"]:
                array.tofile(place / f"{name}.in")
        timing = {"rounds": options.rounds, "seed": case.seed % 2**31} if case.timed else None
        specs.append(
            {"id": case.id, "bound": bound, "repeats": case.repeats, "timing": timing, "counters": bool(bound["counters"]),
             "unordered": bool(candidate.unordered)}
        )  # fmt: skip
    request: dict[str, Any] = {"device": device, "poison": plan.poison, "cases": specs}
    counting = candidate.twin if options.cycles else None
    if counting is not None:
        twin = replace(candidate, manifest=counting.manifest)
        request["cycles"] = [{"id": case.id, "bound": bind_case(twin, task, case)} for case in plan.cases if case.timed]
    write_request(folder, request, *candidate.cubins, twins=counting.cubins if counting is not None else ())


def _quiet_events(folder: Path) -> list[dict[str, Any]]:
    try:
        return read_events(folder)
    except (ProtocolError, OSError):
        return []


def _collect(folder: Path, session: Session) -> None:
    """Read what the worker left, believing only what has the right form and size."""
    try:
        session.events = read_events(folder)
    except ProtocolError as error:
        session.protocol_error = str(error)
        return
    for case in session.plan.cases:
        if not session.of("run", case.id):
            continue
        found = _output_files(folder, session, case, FIRST)
        if found is None:
            return
        session.outputs[case.id] = found
        for end in (LAST, TIMED):
            if any((folder / case.id).glob(f"*{end}")):
                found = _output_files(folder, session, case, end)
                if found is None:
                    return
                session.later[case.id, end] = found
    hang = folder / HANG
    if hang.is_file() and hang.stat().st_size <= hangs.MAX_BYTES + 2**20:
        launches = max((len(bound["launches"]) for bound in session.bound.values()), default=1)
        session.hang_launch, session.hang = hangs.read_regions(hang.read_bytes(), launches)


def _output_files(folder: Path, session: Session, case: Case, end: str) -> dict[str, bytes] | None:
    """Output bytes by name; None, and a protocol error, where a file is not exactly what it must be."""
    found: dict[str, bytes] = {}
    for name, spec in session.bound[case.id]["tensors"].items():
        if spec["mode"] not in ("out", "inout"):
            continue
        path = folder / case.id / f"{name}{end}"
        if not path.is_file() or path.is_symlink() or path.stat().st_size != spec["nbytes"]:
            session.protocol_error = f"output `{name}` of case {case.id} is not a file of {spec['nbytes']} bytes"
            return None
        found[name] = path.read_bytes()
    return found


def output_arrays(task: Task, case: Case, raw: Mapping[str, bytes]) -> dict[str, Array]:
    """Output bytes as arrays of the declared shapes and types."""
    layouts = task.layouts(case.shape.axes)
    return {
        name: np.frombuffer(data, numpy_dtype(task.tensors[name].dtype)).reshape(layouts[name].shape) for name, data in raw.items()
    }
