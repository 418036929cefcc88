"""The process that owns the GPU: `python -m cake_backend.judge.worker FOLDER`.

It interprets one request: load a cubin, and for each case fill buffers, launch, copy raw bytes back, and time. It draws no conclusion;
the parent does (`cake_backend.judge.verdict`). A fault of the kernel ends this process, which is why there is one for each run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from cake_backend.judge.device.driver import DriverError, Gpu, NoDriver, call
from cake_backend.judge.device.launcher import LaunchRefused, Module
from cake_backend.judge.device.race import Race
from cake_backend.judge.device.run import Case, HangBuffer
from cake_backend.judge.device.telemetry import Telemetry
from cake_backend.judge.device.timing import Flusher, forget_persistence
from cake_backend.judge.protocol import EVENTS, FIRST, LAST, REQUEST, TIMED, VERSION

EXIT_FAULT = 3
EXIT_NO_DRIVER = 4


class Worker:
    """One request being carried out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.request: dict[str, Any] = json.loads((folder / REQUEST).read_text())
        if self.request.get("version") != VERSION:
            raise ValueError(f"request version {self.request.get('version')}, expected {VERSION}")
        self.events = (folder / EVENTS).open("ab", buffering=0)
        self.case: str | None = None
        self.stage = "open"
        self.hang: HangBuffer | None = None

    def emit(self, event: str, **fields: Any) -> None:
        """Write one event as one line, at once: what was reported before a fault must survive it."""
        self.events.write(json.dumps({"event": event, **fields}).encode() + b"\n")

    def run(self) -> None:
        """Every case in order."""
        gpu = Gpu.open(self.request.get("device", 0))
        self.emit("device", info=gpu.info)
        forget_persistence(gpu)
        self.stage = "load"
        modules = [Module(gpu, (self.folder / name).read_bytes()) for name in self.request["modules"]]
        if "race" in self.request:
            self._race(gpu, modules)
            return
        entries = {(x.get("module", 0), x["entry"]) for case in self.request["cases"] for x in case["bound"]["launches"]}
        self.emit("module", kernels={name: modules[number].attributes(name) for number, name in sorted(entries)})
        telemetry, flusher = Telemetry(gpu.info["uuid"]), None
        stream = call("cuStreamCreate", 1)  # non-blocking: the default stream must not order anything for us
        for spec in self.request["cases"]:
            self.case, self.stage = spec["id"], "prepare"
            case = Case(self.folder, gpu, modules, spec, self.request["poison"])
            self.hang = case.hang
            for repeat in range(spec.get("repeats", 1)):
                self.stage = "run"
                start = time.monotonic()
                case.reset(stream)
                case.launch(stream)
                call("cuStreamSynchronize", stream)
                self.stage = "collect"
                self._collect(case, repeat, time.monotonic() - start, keep=repeat == 0)
            if spec.get("unordered"):
                self._keep(case, LAST)
            if spec.get("counters"):
                for entry, words, values in case.counters():
                    self.emit("counters", case=self.case, entry=entry, words=words, values=values)
            if timing := spec.get("timing"):
                self.stage = "time"
                flusher = flusher or Flusher(gpu)
                timed, digests = case.time(stream, timing, flusher, telemetry.sample)
                if spec.get("unordered"):
                    self._keep(case, TIMED)
                self.emit(
                    "timing", case=self.case, eager=timed.eager, graph=timed.graph, graph_calls=timed.graph_calls,
                    digests=digests, telemetry=timed.telemetry, flush_bytes=flusher.size,
                )  # fmt: skip
            case.free()
            self.hang = None
        self.emit("done")  # what follows may fail without harm: everything that is judged is there
        self.stage = "cycles"
        twins = [Module(gpu, (self.folder / name).read_bytes()) for name in self.request["twins"]]
        for spec in self.request.get("cycles", ()):
            self._cycles(gpu, twins, spec, flusher or Flusher(gpu), stream)

    def _race(self, gpu: Gpu, modules: list[Module]) -> None:
        """Several candidates over the same data (see `cake_backend.judge.race`)."""

        def now(name: str, stage: str) -> None:
            self.case, self.stage = name, stage
            self.emit("turn", contestant=name, stage=stage)  # whoever ends this process had the last turn

        Race(self.folder, gpu, self.request, modules, self.emit, now).run(Flusher(gpu), Telemetry(gpu.info["uuid"]).sample)
        self.emit("done")

    def _cycles(self, gpu: Gpu, modules: list[Module], spec: dict[str, Any], flusher: Flusher, stream: Any) -> None:
        """One cold launch of the twins; cycles of CTAs and of SMs from the clocks that they read."""
        self.case = spec["id"]
        case = Case(self.folder, gpu, modules, spec, self.request["poison"])
        case.reset(stream)
        flusher.flush(stream)
        case.launch(stream)
        call("cuStreamSynchronize", stream)
        for launch, (entry, words, values) in enumerate(case.counters()):
            self.emit("cycles", case=self.case, launch=launch, entry=entry, **cycles_of(values, words))
        case.free()

    def _collect(self, case: Case, repeat: int, seconds: float, *, keep: bool) -> None:
        """Raw output bytes to files (first run), digests of every run, guard bands, and inputs that changed."""
        digests: dict[str, str] = {}
        (self.folder / case.id).mkdir(exist_ok=True)
        for name, buffer in case.outputs().items():
            data = buffer.download()
            digests[name] = hashlib.sha256(data).hexdigest()
            if keep:
                (self.folder / case.id / f"{name}{FIRST}").write_bytes(data)
        self.emit(
            "run", case=case.id, repeat=repeat, digests=digests, bands=case.broken_bands(), modified=case.modified_inputs(),
            seconds=seconds,
        )  # fmt: skip

    def _keep(self, case: Case, suffix: str) -> None:
        """What the last launch on the first buffers left, for outputs whose bits cannot be compared."""
        for name, buffer in case.outputs().items():
            (self.folder / case.id / f"{name}{suffix}").write_bytes(buffer.download())

    def fault(self, kind: str, error: str) -> None:
        """Report what went wrong, with what the stuck waits left behind, and give up: the context may be unusable."""
        if self.hang is not None:
            self.hang.dump(self.folder)
        self.emit("fault", case=self.case, stage=self.stage, kind=kind, error=error[:500])


def cycles_of(values: list[int], words: int) -> dict[str, int]:
    """What twins counted (see `CYCLE_WORDS`): of the slowest and the middle CTA, and of the SM that was busy for the longest time."""
    table = np.array(values, np.uint32).reshape(-1, words)
    clocks = np.ascontiguousarray(table[:, :4]).view(np.uint64)
    begin, end = clocks[:, 0].astype(np.int64), clocks[:, 1].astype(np.int64)
    if not len(table):
        return {"blocks": 0, "sms": 0, "slowest_block": 0, "median_block": 0, "slowest_sm": 0}
    spans = [int(end[on].max() - begin[on].min()) for sm in np.unique(table[:, 4]) if (on := table[:, 4] == sm).any()]
    each = end - begin
    return {
        "blocks": len(table), "sms": len(spans), "slowest_block": int(each.max()), "median_block": int(np.median(each)), "slowest_sm": max(spans),
    }  # fmt: skip


def main(folder: Path) -> int:
    """Exit status: 0 everything ran, 3 a fault was reported, 4 no driver here."""
    worker = Worker(folder)
    try:
        worker.run()
        return 0
    except NoDriver as error:
        worker.fault("driver", f"no driver: {error}")
        return EXIT_NO_DRIVER
    except DriverError as error:
        worker.fault("memory" if error.code == "CUDA_ERROR_OUT_OF_MEMORY" else "driver", str(error))
    except LaunchRefused as error:
        worker.fault("refused", str(error))
    except (OSError, ValueError, KeyError, MemoryError) as error:
        worker.fault("request", f"{type(error).__name__}: {error}")
    return EXIT_FAULT


if __name__ == "__main__":
    status = main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(status)  # after a fault the driver's own clean-up may hang
