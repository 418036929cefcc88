"""The mutation benchmark: `python -m bench.verify.run --minutes 20 --workers 2` from the repository's root.

Every mutant of the corpus (or a sample) is verified and simulated; the table shows recall, false alarms, localisation and repair by
class. Ground truth is kept in a file between runs, so an interrupted run goes on where it stopped and a later verifier is measured
against the same truth in a minute.
"""

from __future__ import annotations

import argparse
import ast
import json
import platform
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.verify.cases import CASES
from bench.verify.cases.packaged import packaged
from bench.verify.figures import summary, table, times
from bench.verify.measure import Record, TruthStore, digest, measure_all
from bench.verify.mutate import IMPOSSIBLE, Mutant, Subject, mutants
from bench.verify.mutate.double import doubles
from bench.verify.sight import seen, verdict_of
from bench.verify.truth import good

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results" / "verify-mutation.json"
STORE = Path(tempfile.gettempdir()) / "cake-verify-mutation" / "truth.jsonl"


def arguments(argv: list[str]) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m bench.verify.run", description=__doc__)
    p.add_argument("--minutes", type=float, default=10, help="time budget")
    p.add_argument("--workers", type=int, default=1, help="processes, at most 2")
    p.add_argument("--each", type=int, default=0, help="at most this many mutants of a class and schedule (0: all)")
    p.add_argument("--subjects", nargs="*", default=[], help="schedules by name (default: all)")
    p.add_argument("--classes", nargs="*", default=[], help="mutation classes (default: all)")
    p.add_argument("--seed", type=int, default=0, help="of the sample and the order")
    p.add_argument("--repairs", type=float, default=0.25, help="share of flagged mutants whose first fix is tried")
    p.add_argument("--searches", type=float, default=0.0, help="share of flagged mutants for which repairs are searched")
    p.add_argument("--doubles", type=int, default=0, help="mutants with two changes, a schedule")
    p.add_argument("--packaged", action="store_true", help="every schedule that the package ships, on shapes of its task, instead of the corpus (one process)")
    p.add_argument("--known", action="store_true", help="only mutants whose ground truth is known already")
    p.add_argument("--store", type=Path, default=STORE, help="where ground truth is kept")
    p.add_argument("--more", type=Path, default=None, help="ground truth of further mutants, drawn class by class: they count in the rows of their classes, and not in the totals")
    p.add_argument("--judged", type=Path, default=None, help="records of an earlier run (`--records`): the figures of the report again, from these; nothing is measured")
    p.add_argument("--output", type=Path, default=RESULTS, help="where the figures go")
    p.add_argument("--records", type=Path, default=None, help="where the records go, one JSON line a mutant")
    return p.parse_args(argv)


def chosen(a: argparse.Namespace) -> list[Mutant]:
    """The mutants to measure, in an order that spreads classes and schedules."""
    rng = random.Random(a.seed)
    out: list[Mutant] = []
    for name, case in CASES.items():
        if a.subjects and name not in a.subjects:
            continue
        by: dict[str, list[Mutant]] = {}
        for m in mutants(Subject(case)):
            if not a.classes or m.cls in a.classes:
                by.setdefault(m.cls, []).append(m)
        for found in by.values():
            rng.shuffle(found)
            out += found[: a.each] if a.each else found
        out += doubles(case, a.doubles, rng)
    rng.shuffle(out)
    return out


def role_lines() -> dict[str, dict[str, list[int]]]:
    """First and last line of every role block, by schedule."""
    out: dict[str, dict[str, list[int]]] = {}
    for name, case in CASES.items():
        s = Subject(case)
        blocks = [n for n in s.function.body if isinstance(n, ast.With)]
        out[name] = {s.source(n.items[0].context_expr): [n.lineno, n.end_lineno or n.lineno] for n in blocks}
    return out


def unmutated(names: list[str]) -> list[Record]:
    """Verdict and simulation of the good schedules themselves."""
    out = []
    for name in names:
        try:
            for setting in range(len(CASES[name].settings)):
                good(name, setting)
        except AssertionError as wrong:  # shapes of a task that lie outside what this schedule takes
            print(f"{name}: left out: {wrong}"[:200], file=sys.stderr)
            del CASES[name]
            continue
        verdict, ms = verdict_of(CASES[name].text(), name, best_of=5)
        out.append({"subject": name, "verdict": verdict.verdict, "ms": round(ms, 2), "errors": seen(verdict)})
    return out


def main(argv: list[str] | None = None) -> int:
    a = arguments(sys.argv[1:] if argv is None else argv)
    started = time.monotonic()
    store = TruthStore(a.store)
    drawn = set(store.known) if a.more else None
    if a.judged:
        return _again(a, drawn)
    if a.more:
        store.known = {**TruthStore(a.more).known, **store.known}
    if a.packaged:
        CASES.clear()
        CASES.update(packaged())
    names = [n for n in CASES if not a.subjects or n in a.subjects]
    good_ones = unmutated(names)
    for g in good_ones:
        if g["verdict"] != "pass":
            print(f"{g['subject']}: {g['verdict']} {[(e['code'], e['lines'][0], e['message']) for e in g['errors']]}")
    refused = {g["subject"] for g in good_ones if g["verdict"] != "pass"}
    todo = [m for m in chosen(a) if m.subject not in refused]  # a verifier that refuses the good text says nothing about its mutants
    if a.known:
        todo = [m for m in todo if digest(m) in store.known]
    rng = random.Random(a.seed + 1)
    tasks = [(m, store.known.get(digest(m)), rng.random() < a.repairs, rng.random() < a.searches) for m in todo]
    records: list[Record] = []
    if a.records:
        a.records.write_text("", "utf-8")
    shown = time.monotonic()
    for record in measure_all(tasks, a.workers, started + 60 * a.minutes):
        records.append(record)
        if a.records:  # as they come, so that an interrupted run leaves what it measured
            with a.records.open("a", encoding="utf-8") as f:
                f.write(json.dumps(record) + "\n")
        if record["digest"] not in store.known:
            store.add(record["digest"], record["truth"])
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            print(f"{len(records)} of {len(tasks)} mutants, {shown - started:.0f} s", file=sys.stderr)
    figures = summary(records, role_lines(), drawn)
    print(table(figures))
    _write(a, figures, good_ones, records, len(tasks), time.monotonic() - started)
    return 0


def _again(a: argparse.Namespace, drawn: set[str] | None) -> int:
    """The figures of a report from its records."""
    records = [json.loads(line) for line in a.judged.read_text("utf-8").splitlines()]
    report = json.loads(a.output.read_text("utf-8"))
    figures = summary(records, role_lines(), drawn)
    print(table(figures))
    a.output.write_text(json.dumps({**report, **figures, "command": report["command"].removesuffix(" --more") + (" --more" if drawn is not None else "")}, indent=1) + "\n", "utf-8")
    return 0


def _write(a: argparse.Namespace, figures: dict[str, Any], good_ones: list[Record], records: list[Record], planned: int, seconds: float) -> None:
    a.output.parent.mkdir(parents=True, exist_ok=True)
    options = " ".join(f"--{k} {v}" for k, v in vars(a).items() if k in ("minutes", "workers", "each", "doubles", "seed", "repairs", "searches") and v) + "".join(f" --{k} {' '.join(v)}" for k, v in vars(a).items() if k in ("subjects", "classes") and v) + "".join(f" --{k}" for k in ("known", "packaged", "more") if getattr(a, k))
    report = {
        "command": f"python -m bench.verify.run {options}",
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "seconds": round(seconds, 1),
        "planned": planned,
        "elapsed_ms": {"good schedules, best of 5": times(good_ones), "mutants, machine shared": times(records)},
        "schedules": good_ones,
        "impossible_by_construction": IMPOSSIBLE,
        **figures,
    }
    a.output.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
