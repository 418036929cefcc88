"""The tests that need a GPU, with their outcome as JSON: `python -m bench.gpu_tests --out FILE [--without-corpus]`.

Those that time nothing run side by side, each process with a lease of its own; then those that time, whose launches take turns by the
device's one lease while their data is made side by side. Named to pytest as a plugin, this module gives the processes their leases.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from bench.provenance import command

PYTEST = ("-q", "-c", "/dev/null", "--rootdir=.", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "bench.gpu_tests", "-o", "pythonpath=tests/support")
TIMED = "timed or race or times_and_cycles or search or plan_runs"
CORPUS = "the_corpus"  # what `bench.edges` tries as well, with more parameters
SHARED = "CAKE_SHARED_GPU"


def pytest_configure(config: Any) -> None:
    """As a plugin: declare the suite's markers, and lease the device apart from other processes where the stage says so."""
    config.addinivalue_line("markers", "gpu: needs a CUDA GPU and its driver")
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    if os.environ.get(SHARED) and os.environ.get("PYTEST_XDIST_WORKER"):
        os.environ["CAKE_LEASES"] = tempfile.mkdtemp(prefix="cake-leases-")


def outcomes(report: Path) -> dict[str, set[str]]:
    """What became of every test of a JUnit report: the tags that it got, none where it passed."""
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return {f"{c.get('classname', '').rpartition('.')[2]}::{c.get('name')}": {child.tag for child in c} - {"properties", "system-out", "system-err"} for c in cases}


def stage(which: str, *, shared: bool, parallel: int, timeout: float) -> dict[str, set[str]]:
    """Run the tests that `-k which` picks; a run that does not end is a failure of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = [sys.executable, "-m", "pytest", *PYTEST, "-m", "gpu", "-k", which, "-n", str(parallel), f"--junitxml={report}", "tests/gpu"]
        try:
            subprocess.run(words, timeout=timeout, env={**os.environ, SHARED: "1" if shared else ""})
        except subprocess.TimeoutExpired:
            return {f"`-k \"{which}\"` did not end within {timeout:.0f} s": {"error"}}
        return outcomes(report) if report.exists() else {f"`-k \"{which}\"` left no report": {"error"}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--without-corpus", action="store_true", help=f"leave out what `bench.edges` does (`{CORPUS}`)")
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each of the two stages")
    arguments = parser.parse_args()
    less, begun = f" and not {CORPUS}" if arguments.without_corpus else "", time.monotonic()
    found = stage(f"not ({TIMED}){less}", shared=True, parallel=arguments.parallel, timeout=arguments.timeout)
    found |= stage(f"({TIMED}){less}", shared=False, parallel=min(arguments.parallel, 6), timeout=arguments.timeout)
    failed = sorted(n for n, tags in found.items() if tags & {"failure", "error"})
    skipped = sum("skipped" in tags for tags in found.values())
    record = {
        "command": command("bench.gpu_tests"), "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "passed": len(found) - len(failed) - skipped, "skipped": skipped, "failed": failed, "seconds": round(time.monotonic() - begun, 1),
    }  # fmt: skip
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
