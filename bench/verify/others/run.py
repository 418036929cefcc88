"""Ask the other tools on a GPU: `python3 -m bench.verify.others.run --mutants FOLDER --out others.json --budget 200`.

Every question is a process under a time limit: ConSan and plain Triton on the Gluon ports, then compute-sanitizer's racecheck, synccheck and
memcheck on the mutants of `sanitizer_build`. What a tool reports is kept as it says it, shortened.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.verify.others.mutations import MUTATIONS

ROOT = Path(__file__).resolve().parents[3]
TOOLS = ("racecheck", "synccheck", "memcheck")
GLUON_SECONDS, TOOL_SECONDS = 70.0, 25.0
REPORT = re.compile(r"=========\s+((?:Error|Warning|Invalid|Barrier error|Program hit|Race|Fatal|Potential|Divergent|Missing|.* hazard|.*detected).*)")
ASSERTION = re.compile(r"(?:Assertion `?(.*?)[`']? ?failed|((?:Buffer|Barrier|Deadlock|Accessing|Not all)[^\n]*))")
HEADS = re.compile(r"0x[0-9a-f]+|\b\d+\b")


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python3 -m bench.verify.others.run", description=__doc__)
    p.add_argument("--mutants", type=Path, required=True)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--budget", type=float, default=200.0)
    p.add_argument("--parallel", type=int, default=14)
    p.add_argument("--sanitizer", default="compute-sanitizer")
    a = p.parse_args(argv)
    started = time.monotonic()
    deadline = started + a.budget
    gluon = [("gluon", kernel, m, mode) for mode in ("consan", "plain") for kernel, names in MUTATIONS.items() for m in ("", *names)]
    built = [m for m in json.loads((a.mutants / "index.json").read_text())["mutants"] if m["built"] == "ok"]
    built.sort(key=lambda m: (m["cls"] != "control", m["why"] != "twin"))
    tools = [(tool, str(a.mutants), m["key"], "") for m in built for tool in ("none", *TOOLS)]
    results: list[dict[str, Any]] = []

    def work(task: tuple[str, str, str, str]) -> dict[str, Any]:
        if deadline - time.monotonic() < 3:
            return {"task": task, "outcome": "not run"}
        return {"task": task, **(_gluon(task, deadline) if task[0] == "gluon" else _tool(a.sanitizer, task, deadline))}

    with ThreadPoolExecutor(a.parallel) as pool:
        for found in pool.map(work, gluon + tools):
            results.append(found)
            if len(results) % 20 == 0:
                print(f"{len(results)} of {len(gluon) + len(tools)}, {time.monotonic() - started:.0f} s", flush=True)
                _write(a.out, results, started)
    _write(a.out, results, started)
    print(json.dumps(Counter(f"{r['task'][0]}{'/' + r['task'][3] if r['task'][3] else ''}: {r['outcome']}" for r in results)), f"{time.monotonic() - started:.0f} s")
    return 0


def _write(out: Path, results: list[dict[str, Any]], started: float) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"seconds": round(time.monotonic() - started, 1), "results": results}, indent=0))


def _environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}


def watched(command: list[str], seconds: float, environment: dict[str, str]) -> tuple[str, bool, float]:
    """All output of a process group, whether it had to be killed, and its time."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
        killed = False
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            killed = True
            os.killpg(child.pid, signal.SIGKILL)
            child.wait(20)
        said.seek(0)
        return said.read(4 << 20).decode("utf-8", "replace"), killed, round(time.monotonic() - started, 2)


def result_of(text: str) -> dict[str, Any]:
    for line in text.splitlines():
        if line.startswith("RESULT "):
            found: dict[str, Any] = json.loads(line[7:])
            return found
    return {}


def _gluon(task: tuple[str, str, str, str], deadline: float) -> dict[str, Any]:
    _, kernel, mutation, mode = task
    environment = _environment(TRITON_CACHE_DIR=f"/tmp/cake-triton-{mode}")
    if mode == "consan":
        environment["TRITON_INSTRUMENTATION_MODE"] = "consan"
    limit = min(GLUON_SECONDS, deadline - time.monotonic())
    text, killed, seconds = watched([sys.executable, "-m", "bench.verify.others.gluon_child", kernel, mutation], limit, environment)
    found = result_of(text)
    said = sorted({next(g for g in m.groups() if g) for m in ASSERTION.finditer(text)})[:4]
    outcome = "hang" if killed else found.get("outcome", "broke")
    kept = {k: found[k] for k in ("detail", "first_seconds", "seconds_a_run") if k in found}
    return {"outcome": outcome, "said": said, "seconds": seconds, "compiled": "compiled" in text, **kept, **({"tail": text[-600:]} if outcome == "broke" else {})}


def _tool(sanitizer: str, task: tuple[str, str, str, str], deadline: float) -> dict[str, Any]:
    tool, mutants, key, _ = task
    child = [sys.executable, "-m", "bench.verify.others.sanitizer_child", mutants, key.replace("/", ".")]
    command = child if tool == "none" else [sanitizer, "--tool", tool, "--print-limit", "4", *(["--racecheck-report", "all"] if tool == "racecheck" else []), *child]
    text, killed, seconds = watched(command, min(TOOL_SECONDS, deadline - time.monotonic()), _environment())
    found = result_of(text)
    lines = Counter(HEADS.sub("#", m.group(1).strip())[:110] for m in REPORT.finditer(text))
    summary = next((line.strip("= ") for line in text.splitlines() if "SUMMARY" in line), "")
    outcome = "hang" if killed else found.get("outcome", "broke")
    kept = {"detail": found.get("detail", ""), "seconds": seconds, "reports": [f"{n} x {x}" for x, n in lines.most_common(5)], "summary": summary}
    return {"outcome": outcome, **kept, **({"tail": text[-500:]} if outcome == "broke" else {})}


if __name__ == "__main__":
    sys.exit(main())
