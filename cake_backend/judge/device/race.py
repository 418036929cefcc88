"""Several candidates over the same data in one process: each is tried on its own, then all are timed in turns.

Turns make a slow drift of the clock hit everybody alike, and the data are made and copied once for all.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cake_backend.judge.device.buffers import Buffer, poison_pattern
from cake_backend.judge.device.driver import Gpu, call
from cake_backend.judge.device.launcher import Module, Prepared, prepare
from cake_backend.judge.device.timing import GRAPH_SECONDS, L2_MULTIPLE, MAX_GRAPH_CALLS, Flusher, capture, time_graph, time_once
from cake_backend.judge.protocol import FIRST

LEAST_ARENAS = 3
MAX_ARENAS = 24
MEMORY_SHARE = 0.6
SMALL = 64 * 2**20  # bytes of inputs up to which a change of them is looked for

Emit = Callable[..., None]


class Lane:
    """One set of buffers: the task's tensors, shared by all, each contestant's own workspaces, and everybody's launches over them."""

    def __init__(self, spec: Mapping[str, Any], modules: Mapping[str, Sequence[Module]], inputs: Mapping[str, Any], pattern: int) -> None:
        self.modes = {n: t["mode"] for n, t in spec["tensors"].items()}
        self.inputs = inputs
        self.tensors = {n: Buffer(t["nbytes"], pattern) for n, t in spec["tensors"].items()}
        self.pristine = {n: Buffer(t["nbytes"], pattern) for n, t in spec["tensors"].items() if t["mode"] == "inout"}
        self.spaces: dict[str, dict[str, Buffer]] = {}
        self.launches: dict[str, list[Prepared]] = {}
        for name, bound in spec["bound"].items():
            own = self.spaces[name] = {n: Buffer(w["nbytes"], pattern) for n, w in bound["workspaces"].items()}
            addresses = {n: b.address for n, b in {**self.tensors, **own}.items()}
            self.launches[name] = prepare(modules[name], bound, addresses)

    def fill(self) -> None:
        """Inputs as in the files."""
        for name, data in self.inputs.items():
            self.tensors[name].upload(data)
            if name in self.pristine:
                self.pristine[name].upload(data)

    def anew(self, name: str, stream: Any) -> None:
        """What a contestant must find: outputs and its workspaces poisoned, tensors that are updated in place restored."""
        for n, buffer in self.tensors.items():
            if n in self.pristine:
                buffer.copy_from(self.pristine[n], stream)
            elif self.modes[n] == "out":
                buffer.poison(stream)
        for buffer in self.spaces[name].values():
            buffer.poison(stream)

    def enqueue(self, name: str, stream: Any) -> None:
        """All launches of a contestant."""
        for launch in self.launches[name]:
            launch.enqueue(stream)

    def outputs(self) -> dict[str, Buffer]:
        """Buffers that a kernel may write."""
        return {n: b for n, b in self.tensors.items() if self.modes[n] != "in"}

    def digests(self) -> dict[str, str]:
        """Of the outputs as they are now."""
        return {n: hashlib.sha256(b.download()).hexdigest() for n, b in self.outputs().items()}

    @property
    def total(self) -> int:
        """Device bytes."""
        own = (b for spaces in self.spaces.values() for b in spaces.values())
        return sum(b.total for b in (*self.tensors.values(), *self.pristine.values(), *own))

    def free(self) -> None:
        """Give the memory back."""
        for buffer in (*self.tensors.values(), *self.pristine.values(), *(b for s in self.spaces.values() for b in s.values())):
            buffer.free()


@dataclass(slots=True)
class Times:
    """One contestant's seconds a call, one value a round."""

    eager: list[float] = field(default_factory=list)
    graph: list[float] = field(default_factory=list)


class Race:
    """The request's `race` section being carried out; `now` is told whose turn it is, so that a fault has a name."""

    def __init__(
        self, folder: Path, gpu: Gpu, request: Mapping[str, Any], modules: Sequence[Module], emit: Emit, now: Callable[[str, str], None]
    ) -> None:
        self.folder, self.gpu, self.emit, self.now = folder, gpu, emit, now
        self.race: Mapping[str, Any] = request["race"]
        self.pattern = poison_pattern(request["poison"])
        self.modules = {c["name"]: [modules[i] for i in c["modules"]] for c in self.race["contestants"]}
        self.deadline = time.monotonic() + float(self.race["limit_s"])
        self.stream = call("cuStreamCreate", 1)

    def run(self, flusher: Flusher, sample: Callable[[], dict[str, int]]) -> None:
        """Try everybody on every set of data, then time on the one that says so, until all is done or the time is over."""
        for spec in self.race["data"]:
            inputs = {n: self._file(spec, n) for n, t in spec["tensors"].items() if t["mode"] != "out"}
            if spec["try"]:
                self._try(spec, inputs)
            if spec.get("timing"):
                self._time(spec, inputs, flusher, sample)

    def _file(self, spec: Mapping[str, Any], name: str) -> np.ndarray[Any, Any]:
        path = self.folder / spec["id"] / f"{name}.in"
        if path.stat().st_size != spec["tensors"][name]["nbytes"]:
            raise ValueError(f"{path.name} has {path.stat().st_size} bytes, {spec['tensors'][name]['nbytes']} expected")
        return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)

    def _over(self) -> bool:
        return time.monotonic() > self.deadline

    # ------------------------------------------------------------ one after another

    def _try(self, spec: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
        """One launch of each; output bytes go to files once for each different result."""
        kept: set[str] = set()
        digests = {n: hashlib.sha256(d.data).hexdigest() for n, d in inputs.items() if spec["tensors"][n]["mode"] == "in"}
        small = sum(len(d) for d in inputs.values()) <= SMALL
        lane: Lane | None = None
        for name in spec["bound"]:
            if self._over():
                break
            self.now(name, "prepare")
            if lane is None:
                lane = Lane({**spec, "bound": spec["bound"]}, self.modules, inputs, self.pattern)
            lane.fill()
            lane.anew(name, self.stream)
            self.gpu.synchronize()
            self.now(name, "run")
            lane.enqueue(name, self.stream)
            call("cuStreamSynchronize", self.stream)
            self.now(name, "collect")
            found: dict[str, str] = {}
            for n, buffer in lane.outputs().items():
                data = buffer.download()
                found[n] = hashlib.sha256(data).hexdigest()
                if found[n] not in kept:
                    kept.add(found[n])
                    (self.folder / spec["id"] / f"{n}-{found[n][:32]}{FIRST}").write_bytes(data)
            buffers = {**lane.tensors, **lane.spaces[name]}
            bands = {n: broken for n, b in buffers.items() if (broken := b.broken_bands())}
            modified = [n for n, d in digests.items() if small and hashlib.sha256(lane.tensors[n].download()).hexdigest() != d]
            self.emit("tried", case=spec["id"], contestant=name, digests=found, bands=bands, modified=modified)
            if bands:  # what the next one finds must be whole again
                lane.free()
                lane = None
        if lane is not None:
            lane.free()

    # ------------------------------------------------------------ in turns

    def _time(self, spec: Mapping[str, Any], inputs: Mapping[str, Any], flusher: Flusher, sample: Callable[[], dict[str, int]]) -> None:
        names = list(spec["bound"])
        self.now(names[0], "prepare")
        lanes = self._lanes(spec, inputs)
        in_place = bool(lanes[0].pristine)
        shuffle = random.Random(spec["timing"]["seed"])
        times = {name: Times() for name in names}
        graphs: dict[str, tuple[Any, int]] = {}
        for name in names:
            self.now(name, "time")
            for lane in lanes:
                lane.anew(name, self.stream)
                lane.enqueue(name, self.stream)
            self.gpu.synchronize()
            lanes[0].anew(name, self.stream)
            once = time_once(lambda stream, name=name: lanes[0].enqueue(name, stream), flusher, self.stream)
            replays = 1 if in_place else max(1, min(MAX_GRAPH_CALLS, int(GRAPH_SECONDS / max(once, 1e-6))) // len(lanes))
            order = [(lambda stream, lane=lane, name=name: lane.enqueue(name, stream)) for _ in range(replays) for lane in lanes]
            graphs[name] = capture(order, self.stream), len(order)
        telemetry = [sample()]
        for _ in range(spec["timing"]["rounds"]):
            turns = [(name, mode) for name in names for mode in ("eager", "graph")]
            shuffle.shuffle(turns)
            for name, mode in turns:
                self.now(name, "time")
                self._turn(name, mode, lanes[shuffle.randrange(len(lanes))], lanes if in_place else [], flusher, graphs[name], times[name])
            telemetry.append(sample())
            if self._over():
                break
        for name in names:
            self.now(name, "time")
            lanes[0].anew(name, self.stream)
            lanes[0].enqueue(name, self.stream)
            self.gpu.synchronize()
            t = times[name]
            self.emit("raced", contestant=name, eager=t.eager, graph=t.graph, digests=lanes[0].digests(), telemetry=telemetry)
        for lane in lanes:
            lane.free()

    def _turn(
        self, name: str, mode: str, lane: Lane, restored: Sequence[Lane], flusher: Flusher, graph: tuple[Any, int], times: Times
    ) -> None:
        if mode == "eager":
            lane.anew(name, self.stream)
            times.eager.append(time_once(lambda stream: lane.enqueue(name, stream), flusher, self.stream))
            return
        for other in restored:
            other.anew(name, self.stream)
        if restored:
            flusher.flush(self.stream)
        times.graph.append(time_graph(graph[0], graph[1], self.stream))

    def _lanes(self, spec: Mapping[str, Any], inputs: Mapping[str, Any]) -> list[Lane]:
        """At least three sets of buffers, more where they are small: together they exceed the L2 several times."""
        lanes = [Lane(spec, self.modules, inputs, self.pattern)]
        each = max(1, lanes[0].total)
        wanted = max(LEAST_ARENAS, -(-L2_MULTIPLE * self.gpu.info["l2_bytes"] // each))
        free, _ = call("cuMemGetInfo")
        for _ in range(min(wanted, MAX_ARENAS, 1 + int(free * MEMORY_SHARE) // each) - 1):
            lanes.append(Lane(spec, self.modules, inputs, self.pattern))
        for lane in lanes:
            lane.fill()
        self.gpu.synchronize()
        return lanes
