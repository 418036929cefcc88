"""What finding the schedules cost: `python -m bench.search_costs FILE ...` adds runs of `bench.run` to `bench/results/search.json`.

A run is known by its family and date, so one that is named twice, or was added before, counts once. Variants count by name.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.performance import RESULTS
from bench.run_costs import tried

FILE = RESULTS / "search.json"


def row(record: dict[str, Any]) -> dict[str, Any]:
    """One run: when, which variants of Cake it tried, seconds of timing, and seconds that the device was held where it recorded them."""
    results = record["results"]
    timing = record.get("timing_seconds") or round(sum(float(r.get("seconds", 0)) for r in results), 1)
    return {"date": record["date"], "variants": sorted(tried(results)), "timing_seconds": timing, "gpu_seconds": record.get("gpu_seconds")}


def merged(known: dict[str, list[dict[str, Any]]], records: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Runs by family in order of their dates."""
    out = {family: {run["date"]: run for run in runs} for family, runs in known.items()}
    for record in records:
        out.setdefault(record["family"], {})[record["date"]] = row(record)
    return {family: [runs[date] for date in sorted(runs)] for family, runs in sorted(out.items())}


def totals(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of one family's runs."""
    held = [run["gpu_seconds"] for run in runs if run["gpu_seconds"] is not None]
    return {
        "runs": len(runs), "variants_tried": len({name for run in runs for name in run["variants"]}),
        "timing_seconds": round(sum(run["timing_seconds"] for run in runs), 1), "gpu_seconds": round(sum(held), 1), "held_runs": len(held),
    }  # fmt: skip


def main() -> int:
    found = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    FILE.write_text(json.dumps(merged(known, found), separators=(",", ":")) + "\n")
    for family, runs in json.loads(FILE.read_text()).items():
        print(family, totals(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
