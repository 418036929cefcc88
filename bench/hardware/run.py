"""Ask a Hopper GPU: `python3 -m bench.hardware.run --out hardware.json --budget 60`.

Kernels are compiled once, then every case runs in a child process of its own under a time limit, several at a time. A fault is an answer;
so is a kernel that does not end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.hardware.ptx import HEAD
from bench.hardware.questions import questions
from cake_backend.toolchain import compile_cuda

ROOT = Path(__file__).resolve().parents[2]
TARGET = "sm_90a"
CASE_SECONDS = 20.0
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


def ask(folder: Path, name: str, case: str, deadline: float) -> tuple[str, str, dict[str, Any]]:
    """One case in a process: its answer, or how it ended."""
    left = min(CASE_SECONDS, deadline - time.monotonic())
    if left <= 0:
        return name, case, {"not_run": "the time was over"}
    started = time.monotonic()
    command = [sys.executable, "-m", "bench.hardware.child", str(folder / f"{name}.cubin"), name, case]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=left, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return name, case, {"hangs": f"killed after {left:.0f} s"} if left == CASE_SECONDS else {"not_run": "the time was over"}
    try:
        found = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        found = {"broke": (done.stderr.strip() or f"exit {done.returncode}")[-400:]}
    return name, case, {**found, "seconds": round(time.monotonic() - started, 2)}


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
        wanted.sort(key=lambda item: item[0] in MAY_HANG)
        with ThreadPoolExecutor(a.parallel) as pool:
            for question, case, found in pool.map(lambda item: ask(folder, *item, deadline), wanted):
                answers.setdefault(question, {})[case] = found
                _write(a.out, answers, failed, time.monotonic() - started, a.add)
    print(f"{len(wanted)} cases, {time.monotonic() - started:.1f} s, not compiled: {sorted(failed)}")
    return 1 if failed else 0


def _write(out: Path, answers: dict[str, dict[str, Any]], failed: dict[str, str], seconds: float, add: Path | None) -> None:
    asked = questions()
    report = {
        "command": "python3 -m bench.hardware.run", "seconds": round(seconds, 1), "not_compiled": failed,
        "gpu": next((a["gpu"] for cases in answers.values() for a in cases.values() if "gpu" in a), ""),
        "questions": {n: {"contract": asked[n].CONTRACT, "asks": asked[n].ASKS, "cases": cases} for n, cases in answers.items()},
    }  # fmt: skip
    for question in report["questions"].values():
        question["cases"] = {c: {k: v for k, v in found.items() if k != "gpu"} for c, found in question["cases"].items()}
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
        together[name] = {**question, "cases": {**kept, **ran}}
    return {**later, "gpu": later["gpu"] or earlier["gpu"], "seconds": round(earlier["seconds"] + later["seconds"], 1), "questions": together}


if __name__ == "__main__":
    sys.exit(main())
