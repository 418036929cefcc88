"""Benchmark one family on a GPU: `python -m bench.run gemm --built FOLDER [--shape NAME] [--out results.json]`.

Every contender's output is checked against the task's float64 oracle on the timed data, before and after timing; a wrong one is reported
and its times are not. Prints a table, writes JSON with the command that made it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import cake_kernels
from bench.cake_runner import BuiltCandidate, enqueue_all, find_built
from bench.harness import Contender, ContextLost, failed, measure, table
from bench.impossible import refuse
from bench.peers import BASELINES, PEERS, Sets
from bench.provenance import LEFT_OUT, command
from bench.run_costs import spent
from cake_backend.judge.check import SAMPLED_ROWS, Reference, sample_rows
from cake_backend.judge.device.driver import Gpu
from cake_backend.judge.device.telemetry import Telemetry
from cake_backend.judge.floors import floor
from cake_backend.task import Shape, Task, Tensor, numpy_dtype

LEAST_SETS, MAX_SETS = 3, 112
COLD_BYTES = 256 << 20
ROW_BYTES = 2 << 20  # of one output that are checked, but at least 96 rows
TORCH_DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32, "i32": torch.int32, "e4m3": torch.float8_e4m3fn}
NAN_E4M3 = 0x7F


def make_sets(task: Task, shape: Shape, seed: int) -> Sets:
    """Input sets drawn on the device (standard normal), enough of them to exceed the L2 several times."""
    layouts = task.layouts(shape.axes)
    each = sum(x.nbytes for x in layouts.values())
    count = max(LEAST_SETS, min(MAX_SETS, -(-COLD_BYTES // each)))
    torch.manual_seed(seed)
    sets: Sets = []
    for _ in range(count):
        s: dict[str, torch.Tensor] = {}
        for name, t in task.tensors.items():
            dims, dtype = layouts[name].shape, TORCH_DTYPES[t.dtype]
            if t.mode != "out":
                s[name] = torch.randn(dims, device="cuda", dtype=torch.float32).to(dtype)
            else:
                s[name] = torch.empty(dims, device="cuda", dtype=dtype)
        if task.name == "kmeans_assign":
            s["MU_SQ"] = (s["MU"].float() ** 2).sum(-1).contiguous()
        sets.append(s)
    return sets


def poison(task: Task, sets: Sets) -> None:
    """Outputs hold nothing that could be taken for an answer; what is updated in place is left alone."""
    for s in sets:
        for name, t in task.tensors.items():
            if t.mode == "out" and name in s:
                if t.dtype == "e4m3":
                    s[name].view(torch.uint8).fill_(NAN_E4M3)
                else:
                    s[name].fill_(-7 if t.dtype == "i32" else float("nan"))


def unwritten(t: torch.Tensor, dtype: str) -> int:
    """Elements that still hold what `poison` left."""
    if dtype == "e4m3":
        return int((t.contiguous().view(torch.uint8) == NAN_E4M3).sum())
    return int((t == -7).sum() if dtype == "i32" else torch.isnan(t).sum())


def to_numpy(t: torch.Tensor, dtype: str) -> np.ndarray[Any, Any]:
    """The same bits as a NumPy array."""
    wide = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]
    return t.contiguous().view(wide).cpu().numpy().view(numpy_dtype(dtype))


def for_oracle(tensor: torch.Tensor, declared: Tensor) -> np.ndarray[Any, Any]:
    """An input as the oracle gets it: in f32 where the task says that it only widens it."""
    return tensor.float().cpu().numpy() if declared.widens else to_numpy(tensor, declared.dtype)


class Checker:
    """The oracle's answer for the first input set, on all rows or a sample."""

    def __init__(self, task: Task, shape: Shape, sets: Sets, seed: int) -> None:
        self.task, self.shape, self.sets = task, shape, sets
        inputs = {n: for_oracle(sets[0][n], t) for n, t in task.tensors.items() if t.mode != "out"}
        self.kept = {n: sets[0][n].clone() for n, t in task.tensors.items() if t.mode == "inout"}
        row = task.layouts(shape.axes)[next(n for n, t in task.tensors.items() if t.mode != "in")].nbytes // task.rows(shape.axes)
        self.rows = sample_rows(task, shape.axes, np.random.default_rng(seed), max(96, min(SAMPLED_ROWS, ROW_BYTES // row)))  # long rows: fewer
        self.reference = Reference(task, shape.axes, inputs, self.rows)

    def check(self, contender: Contender) -> dict[str, Any]:
        """Poison, run on set 0, compare what was written; outputs that a contender does not write are left out for peers."""
        poison(self.task, self.sets[:1])
        for name, tensor in self.kept.items():  # earlier runs have updated it
            self.sets[0][name].copy_(tensor)
        contender.call(0)
        torch.cuda.synchronize()
        outputs, missing = {}, {}
        for name, t in self.task.tensors.items():
            if t.mode == "in":
                continue
            found = self.sets[0][contender.outputs.get(name, name)]
            left = unwritten(found, t.dtype)  # of the whole output, not a sample
            if not (left == found.numel() and t.optional):
                outputs[name], missing[name] = to_numpy(self.picked(found), t.dtype), left
        verdicts = self.reference.compare(outputs, self.task.distribution("normal"), picked=True)
        return {
            n: {"ok": v.ok and not missing[n], "worst": min(v.worst, 1e30), "reason": v.reason, "failures": v.failures,
                "unwritten": missing[n], **v.extra}
            for n, v in verdicts.items()
        }  # fmt: skip

    def picked(self, output: torch.Tensor) -> torch.Tensor:
        """The rows to check of an output, one a row: taken on the device, since all of it would take longer to fetch than to time."""
        flat = output.reshape(self.task.rows(self.shape.axes), -1)
        if self.rows is None:
            return flat
        bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[flat.element_size()]  # not every type can be indexed
        return flat.view(bits)[torch.from_numpy(self.rows).to(flat.device)].view(flat.dtype)

    def guard(self, contender: Contender, when: str) -> None:
        """Record a check; a contender that is wrong or raises is out."""
        if contender.error is not None or not contender.compared:
            return
        try:
            contender.checked[when] = found = self.check(contender)
            if not all(v["ok"] for v in found.values()):
                contender.error = f"wrong {when} timing: " + "; ".join(
                    f"{n}: {v['reason']}, {v['unwritten']} unwritten" for n, v in found.items() if not v["ok"]
                )
                contender.times = {}
        except Exception as error:  # as in the harness: one contender's failure must not end the others
            failed(contender, error)


def cake_contenders(task: Task, shape: Shape, sets: Sets, built: Path, gpu: Gpu, main_only: bool) -> list[Contender]:
    """Cake's candidates that can take this shape."""
    from bench.candidates import CANDIDATES

    main = {c.name for c in CANDIDATES if c.main}
    elsewhere = {c.name for c in CANDIDATES if not c.takes(shape.name)}
    found = []
    for folder in find_built(built, task.name):
        if (main_only and folder.name not in main) or folder.name in elsewhere:
            continue
        try:
            candidate = BuiltCandidate(folder, gpu)
            if shape not in task.specialised(candidate.record["params"]):
                continue
            wanted = set(candidate.manifest.tensors)
            prepared = [candidate.launches({n: s[n] for n in wanted}, task.scalar_values(shape.axes)) for s in sets]
            resources = candidate.record["compile"]["resources"]
            found.append(
                Contender(
                    folder.name, lambda i, p=prepared: enqueue_all(p[i]), kind="cake",
                    facts={"params": candidate.record["params"], "resources": resources, "grid": [x.grid for x in prepared[0]]},
                )
            )  # fmt: skip
        except Exception as error:  # as above
            found.append(Contender(folder.name, lambda i: None, kind="cake", error=f"{type(error).__name__}: {error}"[:300]))
    return found


def run_shape(task: Task, shape: Shape, arguments: argparse.Namespace, gpu: Gpu, telemetry: Telemetry) -> dict[str, Any]:
    """All contenders of one shape."""
    sets = make_sets(task, shape, arguments.seed)
    contenders = cake_contenders(task, shape, sets, arguments.built, gpu, arguments.main_only) + PEERS[task.name](sets, gpu, shape.axes)
    for c in contenders:
        if c.name in arguments.faulted:
            c.error = "faulted earlier in this run, left out"
        elif c.name in arguments.exclude:
            c.error = LEFT_OUT
    checker = Checker(task, shape, sets, arguments.seed)
    for c in contenders:
        checker.guard(c, "before")
    done = measure(contenders, len(sets), rounds=arguments.rounds, seed=arguments.seed, telemetry=telemetry.sample, budget_s=arguments.budget)
    work = task.work(shape.axes)
    limit = floor(work, task.unit, gpu.info)
    refuse(contenders, limit)
    for c in contenders:
        checker.guard(c, "after")
    rows = table(contenders, flops=work["flops"], nbytes=work["bytes_read"] + work["bytes_written"], baselines=BASELINES[task.name])
    for row in rows:
        for mode in ("cold", "graph"):
            if mode in row:
                row[mode]["floor_over_time"] = limit.seconds / row[mode]["median_s"]
    rows_checked = "all" if checker.rows is None else len(checker.rows)
    return {"shape": shape.name, "axes": shape.axes, "floor": limit.to_json(), "rows_checked": rows_checked, **done, "contenders": rows}


def print_shape(family: str, result: dict[str, Any]) -> None:
    """The table that people read."""
    print(f"\n## {family} {result['shape']} {result['axes']}, {result['rounds']} rounds, floor {result['floor']['seconds'] * 1e6:.1f} us")
    print("contender | graph us (min..max) | cold us | TFLOP/s | GB/s | floor/time | speed-up over (graph)")
    for row in sorted(result["contenders"], key=lambda r: r.get("graph", r.get("cold", {})).get("median_s", 1e9)):
        best = row.get("graph") or row.get("cold")
        if row["error"] or best is None:
            print(f"{row['name']} | {row['error']}")
            continue
        cold = f"{row['cold']['median_s'] * 1e6:.1f}" if "cold" in row else "-"
        over = ", ".join(f"{b} {r['median']:.3f} [{r['ci95'][0]:.3f}, {r['ci95'][1]:.3f}]" for b, r in best["speedup_over"].items())
        print(
            f"{row['name']} | {best['median_s'] * 1e6:.1f} ({best['min_s'] * 1e6:.1f}..{best['max_s'] * 1e6:.1f}) | {cold} | "
            f"{best['tflops']:.1f} | {best['gbytes_per_s']:.0f} | {best['floor_over_time']:.3f} | {over}",
            flush=True,
        )


def short(value: Any) -> Any:
    """The same record with floats of six digits: a timer has no more, and the files are kept."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {k: short(v) for k, v in value.items()}
    return [short(v) for v in value] if isinstance(value, list | tuple) else value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=sorted(PEERS))
    parser.add_argument("--built", type=Path, required=True, help="folder that bench.build wrote")
    parser.add_argument("--shape", action="append", help="benchmark shape of the task (default: all)")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of timing a shape")
    parser.add_argument("--main-only", action="store_true", help="leave out the candidates that only show a cliff")
    parser.add_argument("--exclude", action="append", default=[], help="contender to leave out")
    parser.add_argument("--faulted", action="append", default=[], help="contender that faulted (given when the process restarts itself)")
    parser.add_argument("--seed", type=int, default=int(time.time()) & 0xFFFF)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.zeros(1, device="cuda")  # torch makes the primary context current, which the launcher then shares
    gpu = Gpu.open(0)
    telemetry = Telemetry(gpu.info["uuid"])
    task = cake_kernels.tasks()[arguments.family]
    shapes = [s for s in task.shapes if s.kind == "bench" and (not arguments.shape or s.name in arguments.shape)]
    results: list[dict[str, Any]] = []
    started = time.monotonic()  # of this process: a restart after a fault counts from the restart
    for shape in shapes:
        try:
            results.append(run_shape(task, shape, arguments, gpu, telemetry))
        except ContextLost as lost:
            # a fault is sticky: start this process again without the contender that caused it
            print(f"{lost.name} FAULTED and is left out from here on: {lost.reason}", flush=True)
            os.execv(sys.executable, [sys.executable, "-m", "bench.run", *sys.argv[1:], "--faulted", lost.name])
        print_shape(task.name, results[-1])
        torch.cuda.empty_cache()
        if arguments.out:  # written after every shape: a later fault must not lose an earlier result
            record = {
                "family": task.name, "command": command("bench.run"),
                "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "device": gpu.info, "cpus": os.cpu_count(),
                "versions": _versions(), "seed": arguments.seed, **spent(results, time.monotonic() - started), "results": results,
            }  # fmt: skip
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps(short(record), separators=(",", ":"), default=str) + "\n")
    bad = sorted({c["name"] for r in results for c in r["contenders"] if c["kind"] == "cake" and c["error"]})
    print(f"\n{'WRONG OR FAILED: ' + ', '.join(bad) if bad else 'every cake candidate was right before and after timing'}")
    sys.stdout.flush()
    return 1 if bad else 0


def _versions() -> dict[str, str]:
    import importlib.metadata

    out = {"python": platform.python_version(), "torch": torch.__version__, "cuda": str(torch.version.cuda)}
    for name in ("triton", "flash-kmeans", "flashlib", "fa3-fwd", "liger-kernel", "cuda-bindings", "numpy", "nvidia-cublas", "nvidia-cudnn-cu13"):
        try:
            out[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return out


if __name__ == "__main__":
    status = main()
    os._exit(status)  # a faulted context may hang in the interpreter's own clean-up
