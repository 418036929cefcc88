"""Candidates against each other: tried for right numbers, then timed in turns, all on data that is made once.

One worker process serves all of them. If one of them ends it, that one is blamed and the others go on in a new process; a candidate has
no code on the host, so all it could do to another is write into its buffers, which guard bands and digests show.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from cake_backend.executors.local import run_worker
from cake_backend.judge.check import Reference, sample_rows
from cake_backend.judge.plan import Case
from cake_backend.judge.protocol import EVENTS, FIRST, HANG, ProtocolError, numbers, read_events, write_request
from cake_backend.judge.session import Candidate, bind_case, case_inputs, output_arrays, scratch_folder
from cake_backend.judge.statistics import summarise
from cake_backend.judge.status import Status
from cake_backend.judge.verdict import FAULTS
from cake_backend.task import Task

START_SECONDS = 60.0  # a worker that has not answered so long after its own limit is stuck


@dataclass(slots=True)
class Entry:
    """One contestant: what it has shown so far. `status` is PASSED_UNTIMED once its numbers are right everywhere it was tried."""

    name: str
    candidate: Candidate
    status: Status | None = None
    summary: str = ""
    cases: list[dict[str, Any]] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    eager: list[float] = field(default_factory=list)
    graph: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> list[float]:
        """The times that decide: launches in a graph, else single ones."""
        return self.graph or self.eager

    def timing(self) -> dict[str, Any]:
        """Statistics as a JSON value."""
        return {"eager": summarise(self.eager), "graph": summarise(self.graph)}


@dataclass(slots=True)
class Track:
    """The data of one race: small cases that every contestant must get right, and the timed one, which it must get right too."""

    task: Task
    checks: Sequence[Case]
    timed: Case
    poison: int
    device: int = 0
    lease_timeout: float = 600.0
    cancel: threading.Event | None = None
    python: str | None = None
    spent: float = 0.0
    info: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    _folder: Path | None = None
    _references: dict[str, Reference] = field(default_factory=dict)

    def __enter__(self) -> Track:
        cases = [*self.checks, self.timed]
        need = sum(layout.nbytes for case in cases for layout in self.task.layouts(case.shape.axes).values())
        self._folder = scratch_folder(4 * need)
        for case in cases:
            (self._folder / case.id).mkdir()
            for name, array in case_inputs(self.task, case).items():
                array.tofile(self._folder / case.id / f"{name}.in")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # ------------------------------------------------------------ numbers

    def check(self, entries: Sequence[Entry], limit: Callable[[], float]) -> None:
        """Run everybody once on every case and set their status; who was not reached within `limit()` seconds keeps None."""
        left = list(entries)
        while left and limit() > 0:
            cases = [*self.checks, self.timed]
            events, blamed = self._run(left, cases, timing=None, limit=limit())
            tried: dict[str, dict[str, dict[str, Any]]] = {}
            for event in events:
                if event["event"] == "tried":
                    tried.setdefault(event["contestant"], {})[event["case"]] = event
            for entry in left:
                own = tried.get(entry.name, {})
                if entry is not blamed and len(own) == len(cases):
                    self._judge(entry, [(case, own[case.id]) for case in cases])
            left = [entry for entry in left if entry.status is None]
            if blamed is None:
                break

    def _judge(self, entry: Entry, results: Sequence[tuple[Case, dict[str, Any]]]) -> None:
        entry.status, entry.summary = Status.PASSED_UNTIMED, f"right on {len(results)} cases"
        for case, event in results:
            status, summary, outputs = self._verdict(entry, case, event)
            entry.cases.append(
                {"case": case.id, "status": status.value, "summary": summary, "heldout": False, "shape": case.shape.name,
                 "axes": dict(case.shape.axes), "distribution": case.distribution, "seed": case.seed, "outputs": outputs, "runs": 1}
            )  # fmt: skip
            if status is not Status.PASSED:
                entry.status, entry.summary = status, summary
                return
            if case is self.timed:
                entry.digests = event["digests"]

    def _verdict(self, entry: Entry, case: Case, event: dict[str, Any]) -> tuple[Status, str, dict[str, Any]]:
        where = f"`{case.shape.name}` with `{case.distribution}` data"
        if event["bands"]:
            return Status.OUT_OF_BOUNDS, f"written outside {', '.join(f'`{n}`' for n in event['bands'])} in {where}", {}
        if event["modified"]:
            return Status.INPUT_MODIFIED, f"input {', '.join(f'`{n}`' for n in event['modified'])} was changed in {where}", {}
        raw = {}
        assert self._folder is not None
        for name, digest in event["digests"].items():
            path = self._folder / case.id / f"{name}-{str(digest)[:32]}{FIRST}"
            if not path.is_file() or path.is_symlink():
                return Status.INFRA_ERROR, f"the worker left no output `{name}` of {where}", {}
            raw[name] = path.read_bytes()
        try:
            arrays = output_arrays(self.task, case, raw)
            found = self._reference(case).compare(arrays, self.task.distribution(case.distribution))
        except ValueError as error:
            return Status.INFRA_ERROR, str(error), {}
        shown = {name: v.to_json() for name, v in found.items()}
        wrong = next(((name, v) for name, v in found.items() if not v.ok), None)
        if wrong is not None:
            return Status.INCORRECT_NUMERICAL, f"output `{wrong[0]}` is wrong for {where}: {wrong[1].reason}", shown
        return Status.PASSED, "", shown

    def _reference(self, case: Case) -> Reference:
        if case.id not in self._references:
            rows = sample_rows(self.task, case.shape.axes, np.random.default_rng(case.seed))
            self._references[case.id] = Reference(self.task, case.shape.axes, case_inputs(self.task, case), rows)
        return self._references[case.id]

    # ------------------------------------------------------------ time

    def race(self, entries: Sequence[Entry], rounds: int, limit: float, seed: int = 0) -> None:
        """Add up to `rounds` times to everybody; who faults, or whose bits are others than before, gets that as its status."""
        left = list(entries)
        while left and limit > 0:
            begun = self.spent
            events, blamed = self._run(left, [self.timed], timing={"rounds": rounds, "seed": seed}, limit=limit)
            limit -= self.spent - begun
            for event in events:
                entry = next((e for e in left if event["event"] == "raced" and e.name == event["contestant"]), None)
                if entry is None:
                    continue
                try:
                    entry.eager += numbers(event["eager"])
                    entry.graph += numbers(event["graph"])
                except ProtocolError as error:
                    entry.status, entry.summary = Status.INFRA_ERROR, str(error)
                if event["digests"] != entry.digests and not entry.candidate.unordered:
                    entry.status = Status.NONDETERMINISTIC
                    entry.summary = f"a timed run of `{self.timed.shape.name}` gave other bits than the checked one"
            if blamed is None:
                return
            left = [entry for entry in left if entry is not blamed]

    # ------------------------------------------------------------ the worker

    def _run(
        self, entries: Sequence[Entry], cases: Sequence[Case], *, timing: dict[str, Any] | None, limit: float
    ) -> tuple[list[dict[str, Any]], Entry | None]:
        """One worker process: its events, and whoever ended it."""
        folder = self._folder
        assert folder is not None, "a track is used in a `with` statement"
        for name in (EVENTS, HANG):
            (folder / name).unlink(missing_ok=True)
        cubins: list[bytes] = []
        contestants = []
        for entry in entries:
            own = entry.candidate.cubins
            contestants.append({"name": entry.name, "modules": list(range(len(cubins), len(cubins) + len(own)))})
            cubins += own
        data = []
        for case in cases:
            bound = {entry.name: bind_case(entry.candidate, self.task, case) for entry in entries}
            tensors: dict[str, Any] = {}
            for one in bound.values():
                tensors |= {n: {"nbytes": t["nbytes"], "mode": t["mode"]} for n, t in one["tensors"].items()}
            data.append({"id": case.id, "tensors": tensors, "bound": bound, "try": timing is None, "timing": timing})
        race = {"contestants": contestants, "data": data, "limit_s": limit}
        write_request(folder, {"device": self.device, "poison": self.poison, "race": race}, *cubins)
        run = run_worker(
            folder, device=self.device, timeout=limit + START_SECONDS, lease_timeout=self.lease_timeout, cancel=self.cancel, python=self.python
        )
        self.spent += run.ended.seconds
        try:
            events = read_events(folder)
        except ProtocolError as error:
            self.faults.append(str(error))
            return [], None
        self.info = next((e["info"] for e in events if e["event"] == "device"), self.info)
        if run.ended.cancelled or any(e["event"] == "done" for e in events):
            return events, None
        return events, self._blame(events, entries, run.ended.timed_out, run.ended.describe())

    def _blame(
        self, events: Sequence[Mapping[str, Any]], entries: Sequence[Entry], timed_out: bool, how: str
    ) -> Entry | None:
        """Who was running when the worker ended, with its status set; None where nobody is known, which ends the race."""
        fault = next((e for e in events if e["event"] == "fault"), None)
        turn = next((e["contestant"] for e in reversed(events) if e["event"] == "turn"), None)
        entry = next((e for e in entries if e.name == turn), None)
        if entry is None or (fault is None and not timed_out):
            self.faults.append(str(fault["error"]) if fault is not None else f"the worker ended with {how}")
            return None
        text = str(fault["error"]) if fault is not None else how
        code = next((c for c in FAULTS if c in text), None)
        infra = fault is not None and fault["kind"] in ("memory", "request")
        entry.status = Status.INFRA_ERROR if infra else Status.TIMEOUT if fault is None else Status.RUNTIME_ERROR
        entry.summary = f"{code}: {FAULTS[code]}" if code else text
        return entry
