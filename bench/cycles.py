"""SM cycles of Cake's candidates, read with Nsight Compute: what the cost model predicts, free of the clock that power decides.

`python -m bench.cycles gemm --built FOLDER --out cycles.json` starts itself under `ncu`, launches every candidate `REPEATS` times a shape
and writes elapsed cycles (the slowest SM), tensor-pipe share and DRAM bytes of each. Clocks are left as they are.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.provenance import command as provenance

METRICS = {
    "sm__cycles_elapsed.max": "cycles",
    "gpu__time_duration.sum": "nanoseconds",
    "sm__inst_executed_pipe_tensor.sum": "tensor_instructions",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": "tensor_percent",
    "dram__bytes.sum": "dram_bytes",
    "lts__t_bytes.sum": "l2_bytes",
}
REPEATS = 3
MARK = "cake-launch "


def launch_all(family: str, built: Path, shapes: list[str]) -> None:
    """Launch every candidate of the family; one line on stdout for each launch, in launch order."""
    import torch

    import cake_kernels
    from bench.cake_runner import BuiltCandidate, enqueue_all, find_built
    from bench.run import make_sets
    from cake_backend.judge.device.driver import Gpu

    torch.zeros(1, device="cuda")
    gpu, task = Gpu.open(0), cake_kernels.tasks()[family]
    for shape in (s for s in task.shapes if s.kind == "bench" and (not shapes or s.name in shapes)):
        sets = make_sets(task, shape, 1)[:1]
        for folder in find_built(built, family):
            candidate = BuiltCandidate(folder, gpu)
            if shape not in task.specialised(candidate.record["params"]):
                continue
            prepared = candidate.launches({n: sets[0][n] for n in candidate.manifest.tensors}, task.scalar_values(shape.axes))
            for _ in range(REPEATS):
                enqueue_all(prepared)
                torch.cuda.synchronize()
                print(f"{MARK}{json.dumps([shape.name, folder.name, candidate.record['params']])}", flush=True)


def rows_of(report: str) -> list[dict[str, float]]:
    """One dictionary a kernel launch, from ncu's raw CSV page; a metric that is missing is left out, never 0."""
    lines = report.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    rows = []
    reader = csv.DictReader(io.StringIO("\n".join(lines[start:])))
    for k, row in enumerate(reader):
        if k == 0:  # the line of units
            units = row
            continue
        found: dict[str, float] = {}
        for metric, name in METRICS.items():
            text = (row.get(metric) or "").replace(",", "")
            try:
                found[name] = float(text) * _scale(units.get(metric) or "")
            except ValueError:
                continue
        rows.append(found)
    return rows


def _scale(unit: str) -> float:
    return {"us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}.get(unit, 1.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family")
    parser.add_argument("--built", type=Path, required=True)
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--inside", action="store_true", help="launch only (how the tool calls itself)")
    arguments = parser.parse_args()
    if arguments.inside:
        launch_all(arguments.family, arguments.built, arguments.shape)
        return 0
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    inner = [sys.executable, "-m", "bench.cycles", arguments.family, "--built", str(arguments.built), "--inside"]
    inner += [x for s in arguments.shape for x in ("--shape", s)]
    command = [ncu, "--clock-control", "none", "--csv", "--page", "raw", "--metrics", ",".join(METRICS),
               "-k", "regex:^(gemm_|kmeans_|rmsnorm|attention|softmax|add_|silu_)", *inner]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    launches = [json.loads(line[len(MARK):]) for line in run.stdout.splitlines() if line.startswith(MARK)]
    rows = rows_of("\n".join(line for line in run.stdout.splitlines() if not line.startswith(MARK)))
    if not rows or len(rows) != len(launches):
        print(f"ncu gave {len(rows)} kernels for {len(launches)} launches\n{run.stdout[-1500:]}\n{run.stderr[-1500:]}", file=sys.stderr)
        return 1
    table: dict[tuple[str, str], dict[str, Any]] = {}
    for (shape, name, params), row in zip(launches, rows, strict=True):
        entry = table.setdefault((shape, name), {"shape": shape, "candidate": name, "params": params, "launches": []})
        entry["launches"].append(row)
    for entry in table.values():
        print(entry["shape"], entry["candidate"], " ".join(f"{r.get('cycles', float('nan')):.0f}" for r in entry["launches"]),
              f"tensor {entry['launches'][-1].get('tensor_percent', float('nan')):.1f} %")  # fmt: skip
    if arguments.out:
        record = {"family": arguments.family, "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                  "command": provenance("bench.cycles"), "metrics": METRICS, "rows": list(table.values())}  # fmt: skip
        arguments.out.write_text(json.dumps(record, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
