"""Ask a Hopper GPU: `python3 -m bench.hardware.run --out hardware.json --budget 60`.

Kernels are compiled once, then the cases run in child processes under a time limit, several at a time: a few cases of one question share a
process, and the next one begins behind each fault. A fault is an answer; so is a kernel that does not end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from bench.hardware.ptx import HEAD
from bench.hardware.questions import questions
from cake_backend.toolchain import compile_cuda

ROOT = Path(__file__).resolve().parents[2]
TARGET = "sm_90a"
CASE_SECONDS = 20.0
CASES_A_PROCESS = 6
MAY_HANG = frozenset({"named_barriers", "leaving_the_cluster"})
"""Asked last: a kernel that never ends keeps its process from ending quickly."""


def compiled(folder: Path, only: list[str]) -> dict[str, str]:
    """Cubins in a folder by question; returns what the compiler said of those that did not compile."""
    failed = {}
    wanted = {n: q for n, q in questions().items() if not only or n in {x.partition("/")[0] for x in only}}
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for name, build in pool.map(lambda item: (item[0], compile_cuda(HEAD + item[1].SOURCE, TARGET, cache=None)), wanted.items()):
            if build.cubin is None:
                failed[name] = build.log[-1500:]
            else:
                (folder / f"{name}.cubin").write_bytes(build.cubin)
    return failed


def ask(folder: Path, name: str, cases: list[str], deadline: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """The cases of a question in as few processes as their faults allow: what each answered, or how its process ended."""
    todo = list(cases)
    while todo:
        left = min(CASE_SECONDS, deadline - time.monotonic())
        if left <= 0:
            yield from ((case, {"not_run": "the time was over"}) for case in todo)
            return
        lines, ended = _run(folder, name, todo, left)
        for case in todo[: len(lines)]:
            yield case, lines.pop(0)
            todo.remove(case)
        if ended and todo:
            how = ended if left == CASE_SECONDS or "hangs" not in ended else {"not_run": "the time was over"}
            yield todo.pop(0), how


def _run(folder: Path, name: str, cases: list[str], seconds: float) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """One process: an answer for each of the first cases, and how it ended where the next one has none."""
    command = [sys.executable, "-m", "bench.hardware.child", str(folder / f"{name}.cubin"), name, *cases]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment, check=False)
    except subprocess.TimeoutExpired as late:
        told = late.stdout or b""
        return _answers(told.decode() if isinstance(told, bytes) else told), {"hangs": f"killed after {seconds:.0f} s"}
    found = _answers(done.stdout)
    stopped = bool(found) and ("fault" in found[-1] or "hangs" in found[-1])
    return found, {} if stopped or len(found) == len(cases) else {"broke": (done.stderr.strip() or f"exit {done.returncode}")[-400:]}


def _answers(told: str) -> list[dict[str, Any]]:
    """The lines that are whole."""
    found = []
    for line in told.splitlines():
        try:
            found.append({k: v for k, v in json.loads(line).items() if k != "case"})
        except ValueError:
            break
    return found


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python3 -m bench.hardware.run", description=__doc__)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--budget", type=float, default=60.0, help="seconds for everything")
    p.add_argument("--parallel", type=int, default=12)
    p.add_argument("--add", type=Path, default=None, help="an earlier report whose other questions are kept")
    p.add_argument("--only", nargs="*", default=[], help="questions by name, or NAME/TEXT for the cases that contain the text")
    a = p.parse_args(argv)
    started = time.monotonic()
    deadline = started + a.budget
    answers: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        failed = compiled(folder, a.only)
        parts = [x.partition("/") for x in a.only]
        wanted = [
            (n, c) for n, q in questions().items() if n not in failed for c in q.CASES
            if not parts or any(n == name and text in c for name, _, text in parts)
        ]  # fmt: skip
        with ThreadPoolExecutor(a.parallel) as pool:
            jobs = {pool.submit(lambda n=n, few=few: list(ask(folder, n, few, deadline))): n for n, few in shared(wanted)}
            for job in as_completed(jobs):
                answers.setdefault(jobs[job], {}).update(job.result())
                _write(a.out, answers, failed, time.monotonic() - started, a.add)
    print(f"{len(wanted)} cases, {time.monotonic() - started:.1f} s, not compiled: {sorted(failed)}")
    return 1 if failed else 0


def shared(wanted: list[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Cases of one question that share a process; a question that may hang comes last, a case a process."""
    out: list[tuple[str, list[str]]] = []
    for name in sorted(dict.fromkeys(n for n, _ in wanted), key=lambda n: n in MAY_HANG):
        cases = [c for n, c in wanted if n == name]
        size = 1 if name in MAY_HANG else CASES_A_PROCESS
        out += [(name, cases[i : i + size]) for i in range(0, len(cases), size)]
    return out


def _write(out: Path, answers: dict[str, dict[str, Any]], failed: dict[str, str], seconds: float, add: Path | None) -> None:
    asked = questions()
    report = {
        "command": "python3 -m bench.hardware.run", "seconds": round(seconds, 1), "not_compiled": failed,
        "gpu": next((a["gpu"] for cases in answers.values() for a in cases.values() if "gpu" in a), ""),
        "questions": {n: {"contract": asked[n].CONTRACT, "asks": asked[n].ASKS, "cases": cases} for n, cases in sorted(answers.items())},
    }  # fmt: skip
    for name, question in report["questions"].items():
        ran = [c for c in asked[name].CASES if c in question["cases"]]
        question["cases"] = {c: {k: v for k, v in question["cases"][c].items() if k != "gpu"} for c in ran}
    if add is not None:
        report = merged(json.loads(add.read_text()), report)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")


def merged(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """Both reports' questions; of a question in both, the later one's cases and those that only the earlier one ran."""
    asked = {n: q for n, q in earlier["questions"].items() if n in questions()}
    together = {n: {**q, "cases": {c: x for c, x in q["cases"].items() if "not_run" not in x}} for n, q in asked.items()}
    for name, question in later["questions"].items():
        ran = {c: x for c, x in question["cases"].items() if "not_run" not in x}
        known = questions()[name].CASES
        kept = {c: x for c, x in together.get(name, {"cases": {}})["cases"].items() if c in known}
        both = {**kept, **ran}
        if not both:
            continue
        together[name] = {**question, "cases": {c: both[c] for c in known if c in both}}
    return {**later, "gpu": later["gpu"] or earlier["gpu"], "seconds": round(earlier["seconds"] + later["seconds"], 1), "questions": dict(sorted(together.items()))}


if __name__ == "__main__":
    sys.exit(main())
