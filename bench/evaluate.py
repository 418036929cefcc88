"""The whole loop on a GPU machine, without a server: `python -m bench.evaluate --out FILE [candidate ...]`.

Each candidate goes from text to verdict through `cake_backend.judge.evaluate`: gates, lowering, NVRTC, worker, oracle, timing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import cake_kernels
from bench.candidates import CANDIDATES
from cake_backend.judge import evaluate


def summary_line(name: str, record: dict[str, Any], seconds: float) -> str:
    """One line for people."""
    timing = record.get("timing", {})
    best = ""
    if timing.get("seconds"):
        best = f" {timing['shape']} {timing['seconds'] * 1e6:.1f} us, floor/time {timing['floor_over_time']:.3f}"
    cases = record.get("numerics", {}).get("cases", [])
    return f"{name}: {record['status']} ({record['evidence']}) {len(cases)} cases in {seconds:.0f} s{best} {record['summary'][:200]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--budget", type=float, default=240.0, help="seconds after which no further candidate starts")
    parser.add_argument("--no-timing", action="store_true")
    parser.add_argument("candidates", nargs="*")
    arguments = parser.parse_args()
    texts = {(s.family, s.name): s.text for s in cake_kernels.schedules()}
    tasks = cake_kernels.tasks()
    started, records, failed = time.monotonic(), {}, 0
    for c in CANDIDATES:
        if c.name not in arguments.candidates if arguments.candidates else not c.main:
            continue
        if time.monotonic() - started > arguments.budget:
            print(f"{c.name}: not started, the budget is spent")
            continue
        begun = time.monotonic()
        record = evaluate(
            texts[c.family, c.schedule], params=c.params, task=tasks[c.family], device=arguments.device,
            options={"timing": not arguments.no_timing},
        )  # fmt: skip
        records[c.name] = record
        failed += not record["status"].startswith("PASSED")
        print(summary_line(c.name, record, time.monotonic() - begun), flush=True)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(records, indent=1, default=str))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
