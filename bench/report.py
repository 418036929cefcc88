"""A short table of recorded results: `python -m bench.report FILE...`. The ratios are of medians of rounds in one run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def lines(record: dict[str, Any]) -> list[str]:
    """Markdown rows of one file."""
    out = [f"### {record['family']} on {record['device']['name']}, {record['date']}", f"`{record['command']}`", ""]
    out += ["| shape | contender | graph us | cold us | TFLOP/s | GB/s | floor/time | times faster than |", "|---|---|---|---|---|---|---|---|"]
    for result in record["results"]:
        for row in sorted(result["contenders"], key=lambda r: r.get("graph", r.get("cold", {})).get("median_s", 1e9)):
            best = row.get("graph") or row.get("cold")
            if row["error"] or best is None:
                out.append(f"| {result['shape']} | {row['name']} | {row['error'][:80] if row['error'] else '-'} | | | | | |")
                continue
            over = ", ".join(f"{b} {r['median']:.3f}" for b, r in best["speedup_over"].items())
            cold = f"{row['cold']['median_s'] * 1e6:.1f}" if "cold" in row else "-"
            out.append(
                f"| {result['shape']} | {row['name']} | {best['median_s'] * 1e6:.1f} | {cold} | {best['tflops']:.0f} | "
                f"{best['gbytes_per_s']:.0f} | {best['floor_over_time']:.3f} | {over} |"
            )
    return out


def main() -> int:
    for name in sys.argv[1:]:
        print("\n".join(lines(json.loads(Path(name).read_text()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
