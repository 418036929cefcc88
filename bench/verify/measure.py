"""One mutant measured: verdict, ground truth, repair; and the worker pool that does it for many."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.verify.cases import CASES
from bench.verify.mutate import Mutant
from bench.verify.sight import repaired, searched, seen, verdict_of
from bench.verify.truth import Truth, judge

Record = dict[str, Any]


def digest(m: Mutant) -> str:
    """What ground truth depends on: the text, and the arguments and tunables that it is simulated with."""
    return digest_of(m.subject, m.text)


def digest_of(subject: str, text: str) -> str:
    """The digest of a text as a mutant of a schedule."""
    case = CASES[subject]
    return hashlib.sha256(f"{subject}\0{text}\0{case.settings}\0{case.params}".encode()).hexdigest()[:20]


class TruthStore:
    """Ground truth by mutant, kept in a file of JSON lines: simulation is what takes time, and it does not change with the verifier."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Record] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                entry = json.loads(line)
                if entry["truth"]["state"] != "unknown":  # a later simulator may know
                    self.known[entry["digest"]] = entry["truth"]

    def add(self, key: str, truth: Record) -> None:
        self.known[key] = truth
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as f:
            f.write(json.dumps({"digest": key, "truth": truth}) + "\n")


Task = tuple[Mutant, Record | None, bool, bool]
"""A mutant, its ground truth where that is known, whether its first fix is tried, whether repairs are searched for."""


def measure(task: Task) -> Record:
    """Verdict and, where it is not known yet, ground truth; where asked, whether the first repair works."""
    m, known, repair, search = task
    verdict, ms = verdict_of(m.text, m.subject)
    errors = seen(verdict)
    started = time.perf_counter()
    truth = known or judge(m.text, m.subject).to_json()
    flagged = verdict.verdict == "fail"
    if truth["state"] == "harmless" and flagged and truth["runs"]:
        # The verifier objects where the simulator found nothing, perhaps long ago: look harder before calling it a false alarm.
        harder = judge(m.text, m.subject, seeds=(1, 2, 3))
        truth = {**harder.to_json(), "runs": truth["runs"] + harder.runs}
    record: Record = {
        "key": m.key, "cls": m.cls, "subject": m.subject, "title": m.title, "digest": digest(m), "verdict": verdict.verdict, "errors": errors,
        "notes": [d.message for d in verdict.diagnostics if d.severity == "note" and d.code == "S090"][:2],
        "ms": round(ms, 3), "truth": truth, "contract": m.truth == "contract" or (m.truth == "lanes" and truth["state"] == "harmless"), "lines": sorted(m.lines), "near": sorted(m.near), "roles": sorted(m.roles),
    }  # fmt: skip
    if repair and flagged and truth["state"] == "harmful":
        record["repair"] = _repair(m, errors)
    if search and flagged and truth["state"] == "harmful":
        record["search"], record["search_ms"] = _search(m)
    record["seconds"] = round(time.perf_counter() - started, 2)
    return record


def _search(m: Mutant) -> tuple[str, float]:
    """What becomes of the first edit that the repair search finds, and the milliseconds of the whole answer."""
    started = time.perf_counter()
    found = searched(m.text, m.subject)
    return _judged(m, found), round((time.perf_counter() - started) * 1e3, 1)


def _repair(m: Mutant, errors: list[Record]) -> str:
    """What becomes of the first `certain` or `likely` fix of a plain verdict."""
    return _judged(m, repaired(m.text, errors))


def _judged(m: Mutant, text: str | None) -> str:
    """`none` offered, `refused` by the verifier again, `wrong` by simulation, or `good`."""
    if text is None:
        return "none"
    verdict, _ = verdict_of(text, m.subject)
    if verdict.verdict != "pass":
        return "refused"
    truth: Truth = judge(text, m.subject, most=4)
    return "good" if truth.state == "harmless" else "wrong"


def measure_all(tasks: Iterable[Task], workers: int, deadline: float) -> Iterator[Record]:
    """Records as they are done, until the deadline (a `time.monotonic` value)."""
    if workers <= 1:
        for task in tasks:
            if time.monotonic() > deadline:
                return
            yield measure(task)
        return
    with multiprocessing.get_context("spawn").Pool(min(workers, 2), maxtasksperchild=400) as pool:
        for record in pool.imap_unordered(measure, tasks, chunksize=1):
            yield record
            if time.monotonic() > deadline:
                pool.terminate()
                return
