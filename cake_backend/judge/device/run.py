"""One case on the device: its buffers, its launches, its repetitions."""

from __future__ import annotations

import ctypes
import hashlib
import mmap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cake_backend.judge.device.buffers import Buffer, poison_pattern
from cake_backend.judge.device.driver import DriverError, Gpu, call
from cake_backend.judge.device.launcher import Module, Prepared, prepare
from cake_backend.judge.device.timing import L2_MULTIPLE, Flusher, Timed, measure
from cake_backend.judge.hangs import buffer_bytes
from cake_backend.judge.protocol import HANG

MAX_ARENAS = 48
MEMORY_SHARE = 0.6
REGISTER_FLAGS = 0x1 | 0x2  # portable, device-mapped


class HangBuffer:
    """Host memory that stuck kernels report into, one region for each launch of a plan.

    A shared file mapping where the driver can register one: then the records survive even when this process is killed. Otherwise
    pinned memory, copied to the file when a fault is noticed.
    """

    def __init__(self, folder: Path, nbytes: int, regions: int = 1) -> None:
        self.step = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self.nbytes = self.step * regions
        self.shared = False
        self._view: Any = None
        path = folder / HANG
        with path.open("wb") as f:
            f.truncate(self.nbytes)
        with path.open("r+b") as f:
            self._map = mmap.mmap(f.fileno(), self.nbytes)
        host = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        try:
            call("cuMemHostRegister", host, self.nbytes, REGISTER_FLAGS)
            self.shared = True
        except DriverError:
            host = int(call("cuMemHostAlloc", self.nbytes, REGISTER_FLAGS))
            self._view = (ctypes.c_char * self.nbytes).from_address(host)
            ctypes.memset(host, 0, self.nbytes)
        self.device = int(call("cuMemHostGetDevicePointer", host, 0))

    def dump(self, folder: Path) -> None:
        """Make the file hold the records."""
        if self.shared:
            self._map.flush()
        else:
            (folder / HANG).write_bytes(bytes(self._view))


class Arena:
    """One set of buffers for all tensors and workspaces of a case, and the launches over it."""

    def __init__(self, case: Case, pattern: int) -> None:
        bound = case.bound
        self.buffers = {
            name: Buffer(spec["nbytes"], pattern) for name, spec in {**bound["tensors"], **bound["workspaces"]}.items()
        }
        self.launches: list[Prepared] = []

    def prepare(self, modules: Sequence[Module], bound: Mapping[str, Any], **reports: int) -> None:
        addresses = {name: b.address for name, b in self.buffers.items()}
        self.launches = prepare(modules, bound, addresses, **reports)

    def enqueue(self, stream: Any) -> None:
        for launch in self.launches:
            launch.enqueue(stream)

    def free(self) -> None:
        for buffer in self.buffers.values():
            buffer.free()


class Case:
    """A bound manifest with its input files (`<id>/<tensor>.in`), ready to run."""

    def __init__(self, folder: Path, gpu: Gpu, modules: Sequence[Module], spec: Mapping[str, Any], seed: int) -> None:
        self.folder, self.gpu, self.modules, self.spec = folder, gpu, modules, spec
        self.id: str = spec["id"]
        self.bound: Mapping[str, Any] = spec["bound"]
        self.pattern = poison_pattern(seed)
        self.modes = {n: t["mode"] for n, t in self.bound["tensors"].items()}
        self.inputs = {n: self._file(n) for n, m in self.modes.items() if m != "out"}
        self.digests = {n: hashlib.sha256(d.data).hexdigest() for n, d in self.inputs.items() if self.modes[n] != "inout"}
        self.arena = Arena(self, self.pattern)
        self.hang: HangBuffer | None = None
        self._counters: Buffer | None = None
        self._counter_words = int(self.bound.get("counters", 0))
        # grids are known only once occupancy is, so launches are prepared twice where a buffer depends on them
        self.arena.prepare(modules, self.bound)
        launches = self.bound["launches"]
        wants_hang = any(p["kind"] == "hang" for launch in launches for p in launch["params"])
        nbytes = buffer_bytes([(p.grid, p.block) for p in self.arena.launches]) if wants_hang else 0
        if nbytes:
            self.hang = HangBuffer(folder, nbytes, len(launches))
        self._counter_step = max((p.grid for p in self.arena.launches), default=1) * self._counter_words * 4
        if self._counter_words:
            self._counters = Buffer(max(4, self._counter_step) * len(launches), 0)
        if wants_hang and not nbytes:
            raise ValueError("the grid is too large for hang records")
        self._prepare(self.arena)

    def _prepare(self, arena: Arena) -> None:
        hang = {"hang": self.hang.device, "hang_step": self.hang.step} if self.hang is not None else {}
        counters = {"counters": self._counters.address, "counters_step": self._counter_step} if self._counters is not None else {}
        arena.prepare(self.modules, self.bound, **hang, **counters)

    def _file(self, name: str) -> np.ndarray[Any, Any]:
        path = self.folder / self.id / f"{name}.in"
        if path.stat().st_size != self.bound["tensors"][name]["nbytes"]:
            raise ValueError(f"{path.name} has {path.stat().st_size} bytes, {self.bound['tensors'][name]['nbytes']} expected")
        return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)

    def reset(self, stream: Any) -> None:
        """Fresh inputs, poisoned outputs and workspaces, cleared counters."""
        self._fill(self.arena)
        if self._counters is not None:
            call("cuMemsetD32", self._counters.address, 0, self._counters.nbytes // 4)
        self.gpu.synchronize()

    def _fill(self, arena: Arena) -> None:
        for name, buffer in arena.buffers.items():
            if name in self.inputs:
                buffer.upload(self.inputs[name])
            else:
                buffer.poison()

    def launch(self, stream: Any) -> None:
        self.arena.enqueue(stream)

    def outputs(self) -> dict[str, Buffer]:
        return {n: b for n, b in self.arena.buffers.items() if self.modes.get(n) in ("out", "inout")}

    def broken_bands(self) -> dict[str, dict[str, int]]:
        """Guard bands that were written to, by buffer."""
        return {n: broken for n, b in self.arena.buffers.items() if (broken := b.broken_bands())}

    def modified_inputs(self) -> list[str]:
        """Inputs whose bytes on the device are no longer those of the file."""
        return [
            n for n, digest in self.digests.items() if hashlib.sha256(self.arena.buffers[n].download()).hexdigest() != digest
        ]

    def counters(self) -> list[tuple[str, int, list[int]]]:
        """(kernel, words a CTA, all words) of every launch that counts, as the last run left them."""
        if self._counters is None:
            return []
        raw, out = self._counters.download(), []
        for i, (launch, spec) in enumerate(zip(self.arena.launches, self.bound["launches"], strict=True)):
            if any(p["kind"] == "counters" for p in spec["params"]):
                words = np.frombuffer(raw, np.uint32, launch.grid * self._counter_words, i * self._counter_step)
                out.append((launch.entry, self._counter_words, [int(w) for w in words]))
        return out

    def time(
        self, stream: Any, timing: Mapping[str, Any], flusher: Flusher, sample: Callable[[], dict[str, int]]
    ) -> tuple[Timed, list[dict[str, str]]]:
        """Time over several arenas that together exceed the L2; also the digests of what every arena's last launch left behind."""
        self._fill(self.arena)
        pristine = {n: Buffer(self.arena.buffers[n].nbytes, self.pattern) for n, m in self.modes.items() if m == "inout"}
        for name, buffer in pristine.items():
            buffer.copy_from(self.arena.buffers[name])
        arenas = [self.arena, *self._more_arenas(int(timing.get("arenas", 3)))]

        def anew(which: int, on: Any) -> None:
            for name, buffer in arenas[which].buffers.items():
                if name in pristine:
                    buffer.copy_from(pristine[name], on)
                elif name not in self.inputs:
                    buffer.poison(on)

        self.gpu.synchronize()
        timed = measure(
            self.gpu,
            [a.enqueue for a in arenas],
            stream,
            rounds=int(timing.get("rounds", 24)),
            warmup=int(timing.get("warmup", 3)),
            flusher=flusher,
            sample=sample,
            graph=bool(timing.get("graph", True)),
            seed=int(timing.get("seed", 0)),
            before=anew,
            in_place=bool(pristine),
        )
        digests = [
            {n: hashlib.sha256(arena.buffers[n].download()).hexdigest() for n, m in self.modes.items() if m in ("out", "inout")}
            for arena in arenas
        ]
        for arena in arenas[1:]:
            arena.free()
        for buffer in pristine.values():
            buffer.free()
        return timed, digests

    def _more_arenas(self, least: int) -> list[Arena]:
        """Copies of the first arena: at least `least` in all, enough to exceed the L2 several times, as memory allows."""
        each = sum(b.total for b in self.arena.buffers.values())
        wanted = max(least, -(-L2_MULTIPLE * self.gpu.info["l2_bytes"] // max(1, each)))
        free, _ = call("cuMemGetInfo")
        count = min(wanted, MAX_ARENAS, 1 + int(free * MEMORY_SHARE) // max(1, each))
        arenas = []
        for _ in range(count - 1):
            arena = Arena(self, self.pattern)
            for name in self.inputs:  # outputs start poisoned, so that a launch which writes nothing is seen in every arena
                arena.buffers[name].copy_from(self.arena.buffers[name])
            self._prepare(arena)
            arenas.append(arena)
        return arenas

    def free(self) -> None:
        self.arena.free()
        if self._counters is not None:
            self._counters.free()
