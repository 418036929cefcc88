"""The process that runs one mutant on a GPU: `python -m bench.verify.silicon_child ROOT NAME --runs 20`.

Prints one JSON line an event: `ready` once the kernel is loaded, `run` before each launch, `end` with what came of it. A mutant may fault or
hang: then the last line says where it was, and the parent ends the process. Needs NumPy, ml_dtypes and cuda.bindings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from bench.verify.silicon_compare import differs
from bench.verify.silicon_neighbours import Neighbours, mode_of
from cake_backend.judge.device.buffers import Buffer, poison_pattern
from cake_backend.judge.device.driver import DriverError, Gpu, call
from cake_backend.judge.device.launcher import LaunchRefused, Module, Prepared, prepare

DTYPES: dict[str, Any] = {
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
    "u8": np.uint8, "i8": np.int8, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "bool": np.bool_,
}  # fmt: skip


CHECKED = 5
"""After so many runs guard bands and inputs are looked at: nothing puts them back in between."""


def emit(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


class Setting:
    """Buffers and launches for one setting's arguments."""

    def __init__(self, gpu: Gpu, module: Module, bound: Mapping[str, Any], index: int, arguments: Mapping[str, Any], pattern: int) -> None:
        self.bound = bound
        specs = {**bound["tensors"], **bound["workspaces"]}
        self.buffers = {name: Buffer(spec["nbytes"], pattern) for name, spec in specs.items()}
        self.inputs = {name: np.ascontiguousarray(arguments[f"{index}.in.{name}"]) for name in bound["tensors"]}
        # what the unmutated schedule writes: a mutant that no longer does has another idea of what its outputs are
        after = {name: arguments[f"{index}.want.{name}"] for name in bound["tensors"] if f"{index}.want.{name}" in arguments}
        self.free = {name for name in bound["tensors"] if f"{index}.free.{name}" in arguments}  # words that blocks only follow each other by
        self.want = {name: self._shaped(name, data) for name, data in after.items()}
        self.fresh, self.shadows = True, dict[str, Buffer]()
        self.launches: list[Prepared] = prepare(module, bound, {n: b.address for n, b in self.buffers.items()})

    def _shaped(self, name: str, data: Any) -> Any:
        spec = self.bound["tensors"][name]
        return np.frombuffer(bytes(data), np.uint8).view(DTYPES[spec["dtype"]]).reshape(spec["shape"])

    def reset(self) -> None:
        """Outputs with what the case fills them with (NaN), workspaces poisoned; inputs are put there once, so that what changes them is seen at the end."""
        for name, buffer in self.buffers.items():
            if name not in self.inputs:
                buffer.poison()
            elif self.fresh or name in self.want or name in self.free:
                buffer.upload(self.inputs[name])
        self.fresh = False

    def come_late(self, name: str, beside: Neighbours, stream: Any) -> None:
        """Leave an input to the kernel before, which writes it when the mutant may already run."""
        if name not in self.shadows:
            self.shadows[name] = Buffer(self.buffers[name].nbytes, self.buffers[name].pattern)
            self.shadows[name].upload(self.inputs[name])
        self.buffers[name].poison(stream)
        beside.late(self.buffers[name].address, self.shadows[name].address, self.buffers[name].nbytes, stream)

    def half(self, run: int) -> list[tuple[int, int]]:
        """Address and bytes of every second input."""
        return [(self.buffers[name].address, self.buffers[name].nbytes) for i, name in enumerate(self.inputs) if (i + run // 2) % 2 and self.buffers[name].nbytes]

    def outputs(self) -> dict[str, Any]:
        return {name: self._shaped(name, self.buffers[name].download()) for name in self.want}

    def damage(self) -> str:
        """Memory that changed and should not have: guard bands, inputs."""
        for name, buffer in self.buffers.items():
            if broken := buffer.broken_bands():
                return f"bytes beside `{name}`: {broken}"
        for name, data in self.inputs.items():
            if name not in self.want and name not in self.free and bytes(self.buffers[name].download()) != data.tobytes():
                return f"input `{name}` changed"
        return ""


def seed_writer(module: Module, symbol: str) -> Callable[[int, int], None]:
    """A function that sets the kernel's seed and switches; does nothing for a kernel without a place for either."""
    try:
        address, _ = call("cuModuleGetGlobal", module.handle, symbol.encode())
    except DriverError:
        return lambda seed, switches: None

    def write(seed: int, switches: int) -> None:
        words = np.array([seed, switches], np.uint32)
        call("cuMemcpyHtoD", address, int(words.ctypes.data), 8)

    return write


def setting_of(run: int, settings: int) -> int:
    """Every second run is of the first setting, which covers the most; the others share the rest."""
    return 0 if settings == 1 or run % 2 == 0 else 1 + run // 2 % (settings - 1)


def launch_all(root: Path, name: str, runs: int, progress: dict[str, Any]) -> dict[str, Any]:
    """Load, and launch `runs` times until something is wrong; `progress` says where it was when an exception ends it."""
    index, spec = json.loads((root / "index.json").read_text()), json.loads((root / name / "case.json").read_text())
    gpu = Gpu.open(0)
    beside = Neighbours(gpu, (root / "neighbours.cubin").read_bytes())
    stream = call("cuStreamCreate", 1)
    emit("ready", gpu=gpu.info["name"], driver=gpu.info["driver"])
    progress["stage"] = "load"
    module = Module(gpu, lzma.decompress((root / name / "kernel.cubin.xz").read_bytes()))
    seed, salt = seed_writer(module, index["seed_symbol"]), int(hashlib.sha256(name.encode()).hexdigest()[:6], 16)
    digests: dict[int, set[str]] = {}
    late = spec.get("late", [])
    with np.load(root / "arguments" / f"{spec['subject']}.npz") as arguments:
        settings = [Setting(gpu, module, b, i, arguments, poison_pattern(salt)) for i, b in enumerate(spec["settings"])]
    for run in range(runs):
        which = setting_of(run, len(settings))
        setting, mode = settings[which], mode_of(run)
        key = salt * 64 + run if mode.delays else 0
        behind = late[run // 2 % len(late)] if late and run % 2 else ""
        told = f"{mode.name}; `{behind}` comes late" if behind else mode.name
        progress |= {"stage": "launch", "run": run, "setting": which, "seed": key, "mode": told}
        emit("run", run=run, setting=which, seed=key, mode=told)
        seed(key, mode.switches | (run * 0x9E3779 & 0xFFFFFF) << 8)
        setting.reset()
        beside.enqueue("scrub", stream)
        if mode.cold:
            beside.empty_cache(stream)
        if mode.half:
            beside.read_half(setting.half(run), stream)
        gpu.synchronize()
        for name in mode.before:
            beside.enqueue(name)
        if behind:
            setting.come_late(behind, beside, stream)
        for launch in setting.launches:
            launch.enqueue(stream)
        for name in mode.after:
            beside.enqueue(name)
        progress |= {"stage": "run", "started": time.monotonic()}
        gpu.synchronize()
        progress["stage"] = "compare"
        outputs = setting.outputs()
        digests.setdefault(which, set()).add(hashlib.sha256(b"".join(x.tobytes() for x in outputs.values())).hexdigest())
        if wrong := differs(outputs, setting.want, spec["tolerance"]):
            return {"outcome": "mismatch", "detail": wrong}
        if "squat" in mode.after and (words := beside.found_changed()):
            return {"outcome": "damage", "detail": f"{words} words of the shared memory of blocks that came later changed"}
        if (run % CHECKED == CHECKED - 1 or run == runs - 1) and (damage := next(filter(None, (s.damage() for s in settings)), "")):
            return {"outcome": "damage", "detail": damage}
    return {"outcome": "clean", "detail": "", "varied": any(len(d) > 1 for d in digests.values())}


def outcome(root: Path, name: str, runs: int) -> dict[str, Any]:
    """What came of a mutant, exceptions of the driver included: a trap after the time limit of a wait is a hang, any other fault a fault."""
    progress: dict[str, Any] = {"stage": "open"}
    limit = json.loads((root / "index.json").read_text())["wait_nanoseconds"] * 1e-9
    try:
        found = launch_all(root, name, runs, progress)
    except LaunchRefused as error:
        found = {"outcome": "refused", "detail": str(error)}
    except DriverError as error:
        found = {"outcome": fault_kind(progress, time.monotonic(), limit), "detail": str(error)}
    progress.pop("started", None)
    return {**progress, **found}


def fault_kind(progress: Mapping[str, Any], now: float, limit: float) -> str:
    """Which outcome a driver's error is, by the stage it came in and how long the kernel had run."""
    if progress["stage"] in ("load", "launch"):
        return "refused"
    if progress["stage"] == "run":
        return "hang" if now - progress["started"] >= 0.95 * limit else "fault"
    return "infra" if progress["stage"] == "open" else "fault"


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("root", type=Path)
    p.add_argument("name")
    p.add_argument("--runs", type=int, default=20)
    a = p.parse_args()
    emit("end", **outcome(a.root, a.name, a.runs))
    sys.stdout.flush()
    os._exit(0)  # after a fault the driver's own clean-up may hang
