"""Run the mutants on a GPU: `python3 -m bench.verify.silicon_run --mutants .carry/mutants --out $OUT/silicon.json --budget 180`.

One child process a mutant (`silicon_child`), several at a time; each stops at its first hang, fault or wrong output and is killed where it
goes silent. Controls run first, classes that may block for good last. The result is written again after every mutant.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.verify.silicon_process import Limits, watch

ROOT = Path(__file__).resolve().parents[2]
CHILD = ("-m", "bench.verify.silicon_child")
MOST_STUCK = 4
MOST_INFRA = 8
BLOCKING = frozenset({"register-pool", "named-participants", "drop-turn", "drop-sync", "reduction-scratch"})
"""Classes whose hang no time limit of a wait ends: named barriers and register pools."""


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python3 -m bench.verify.silicon_run", description=__doc__)
    p.add_argument("--mutants", type=Path, required=True)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--budget", type=float, default=180.0, help="seconds for everything")
    p.add_argument("--runs", type=int, default=20)
    p.add_argument("--parallel", type=int, default=8)
    p.add_argument("--start-limit", type=float, default=Limits.start)
    p.add_argument("--silence-limit", type=float, default=Limits.silence)
    p.add_argument("--only", nargs="*", default=[], help="keys that contain one of these")
    p.add_argument("--child", nargs="+", default=list(CHILD), help="arguments of the Python that runs one mutant")
    a = p.parse_args(argv)
    experiment = Experiment(a.mutants, a.out, a.budget, Limits(a.start_limit, a.silence_limit), a.runs, a.child, a.only)
    experiment.run(a.parallel)
    print(json.dumps(experiment.counts()), f"{experiment.seconds():.1f} s")
    return 0 if experiment.results else 1


class Experiment:
    """All mutants of a folder, their results so far, and what ends the whole early: the budget, or a GPU that no longer answers."""

    def __init__(self, mutants: Path, out: Path, budget: float, limits: Limits, runs: int, child: Sequence[str], only: Sequence[str] = ()) -> None:
        self.mutants, self.out, self.limits, self.runs, self.child = mutants, out, limits, runs, tuple(child)
        built = [m for m in json.loads((mutants / "index.json").read_text())["mutants"] if m["built"] == "ok"]
        self.todo = ordered([m for m in built if not only or any(x in m["key"] for x in only)])
        self.planned = len(self.todo)
        self.results: list[dict[str, Any]] = []
        self.started = time.monotonic()
        self.deadline = self.started + budget
        self.stopped = ""
        self.lock = threading.Lock()
        self.strikes: Counter[str] = Counter()

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def counts(self) -> dict[str, int]:
        return {**Counter(r["outcome"] for r in self.results), "planned": self.planned}

    def run(self, parallel: int) -> None:
        """Work through the list with so many children at a time."""
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(parallel)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self._write()

    def _work(self) -> None:
        while (m := self._next()) is not None:
            self._record(m, self._one(m))

    def _next(self) -> dict[str, Any] | None:
        with self.lock:
            room = self.deadline - time.monotonic() > self.limits.silence
            if not room:
                self.stopped = self.stopped or "budget"
            return self.todo.pop(0) if self.todo and not self.stopped else None

    def _one(self, m: dict[str, Any]) -> dict[str, Any]:
        """A mutant's result; a child that never got ready is tried once more."""
        command = [sys.executable, *self.child, str(self.mutants), m["key"].replace("/", "."), "--runs", str(self.runs)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])), "OMP_NUM_THREADS": "1"}
        environment["OPENBLAS_NUM_THREADS"] = "1"
        found = watch(command, self.limits, self.deadline, environment)
        if found["outcome"] == "infra" and not self.stopped:
            found = {**watch(command, self.limits, self.deadline, environment), "tries": 2}
        return found

    def _record(self, m: dict[str, Any], found: dict[str, Any]) -> None:
        with self.lock:
            self.results.append({"key": m["key"], "at": round(self.seconds(), 1), **found})
            self.strikes["stuck"] += bool(found.get("stuck"))
            self.strikes["infra"] = self.strikes["infra"] + 1 if found["outcome"] == "infra" else 0
            if self.strikes["stuck"] >= MOST_STUCK or self.strikes["infra"] >= MOST_INFRA:
                self.stopped = "the GPU no longer answers"
            if len(self.results) % 10 == 0 or found["outcome"] == "infra":
                print(f"{len(self.results)} of {self.planned}, {self.seconds():.0f} s: {json.dumps(self.counts())}", flush=True)
            self._write()

    def _write(self) -> None:
        """The whole file again, put in place at once: what is there is always complete."""
        report = {"seconds": round(self.seconds(), 1), "planned": self.planned, "runs": self.runs, "stopped": self.stopped, "results": self.results}
        self.out.parent.mkdir(parents=True, exist_ok=True)
        partial = self.out.with_name(self.out.name + ".part")
        partial.write_text(json.dumps(report, indent=0))
        partial.replace(self.out)


def ordered(mutants: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Controls, then the rest mixed, those that may block a multiprocessor for good at the end."""

    def late(m: dict[str, Any]) -> int:
        return 0 if m["cls"] == "control" else 2 if m["cls"] in BLOCKING else 1

    mixed = list(mutants)
    random.Random(0).shuffle(mixed)
    return sorted(mixed, key=late)


if __name__ == "__main__":
    sys.exit(main())
