"""How long does it take? Rounds of single cold launches and of captured graphs, on data that the L2 cannot hold."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cake_backend.judge.device.driver import Event, Gpu, bindings, call

Enqueue = Callable[[Any], None]

L2_MULTIPLE = 3
LEAST_FLUSH = 64 * 2**20
GRAPH_SECONDS = 2e-3
MAX_GRAPH_CALLS = 400


@dataclass(slots=True)
class Timed:
    """Seconds a call: one value a round, for single cold launches (`eager`) and for graphs of many launches (`graph`)."""

    eager: list[float]
    graph: list[float]
    graph_calls: int
    telemetry: list[dict[str, int]]


class Flusher:
    """Empties the L2 between launches by writing a buffer of twice its size, with another value each time."""

    def __init__(self, gpu: Gpu) -> None:
        self.size = max(LEAST_FLUSH, 2 * gpu.info["l2_bytes"])
        self.address = int(call("cuMemAlloc", self.size))
        self.value = 0

    def flush(self, stream: Any) -> None:
        self.value = (self.value + 1) & 0xFFFFFFFF
        call("cuMemsetD32Async", self.address, self.value, self.size // 4, stream)


def forget_persistence(gpu: Gpu) -> None:
    """Take back what an earlier kernel may have pinned in the L2; devices without the feature refuse, which is as good."""
    from cake_backend.judge.device.driver import DriverError

    d = bindings()
    for name, arguments in (
        ("cuCtxResetPersistingL2Cache", ()),
        ("cuCtxSetLimit", (d.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0)),
    ):
        try:
            call(name, *arguments)
        except DriverError:
            continue


def time_once(enqueue: Enqueue, flusher: Flusher, stream: Any) -> float:
    """Seconds of one launch with a cold L2. The flush keeps the device busy until launch and events are queued behind it."""
    start, stop = Event(), Event()
    flusher.flush(stream)
    start.record(stream)
    enqueue(stream)
    stop.record(stream)
    stop.wait()
    return stop.seconds_since(start)


def capture(enqueues: Sequence[Enqueue], stream: Any) -> Any:
    """An executable graph of these launches in order."""
    d = bindings()
    call("cuStreamBeginCapture", stream, d.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    try:
        for enqueue in enqueues:
            enqueue(stream)
    finally:
        graph = call("cuStreamEndCapture", stream)
    return call("cuGraphInstantiate", graph, 0)


def time_graph(executable: Any, calls: int, stream: Any) -> float:
    """Seconds a call of one replay."""
    start, stop = Event(), Event()
    start.record(stream)
    call("cuGraphLaunch", executable, stream)
    stop.record(stream)
    stop.wait()
    return stop.seconds_since(start) / calls


def _nothing(which: int, stream: Any) -> None:
    return None


def measure(
    gpu: Gpu,
    sets: Sequence[Enqueue],
    stream: Any,
    *,
    rounds: int,
    warmup: int,
    flusher: Flusher,
    sample: Callable[[], dict[str, int]],
    graph: bool = True,
    seed: int = 0,
    before: Callable[[int, Any], None] = _nothing,
    in_place: bool = False,
) -> Timed:
    """Time one candidate over several input sets that together exceed the L2, eager and graph in random order each round.

    `before(set, stream)` runs outside the timed window (it poisons outputs and restores what is updated in place). The order of modes and
    the first set of a round are shuffled, so that neither always follows the other. With `in_place` a launch changes what the next
    one on the same set would read: a graph then holds one launch a set, and every set is made anew before each replay.
    """
    shuffle = random.Random(seed)
    for i in range(max(warmup, len(sets))):  # every set once: its outputs are compared afterwards
        before(i % len(sets), stream)
        sets[i % len(sets)](stream)
    gpu.synchronize()
    before(0, stream)
    once = time_once(sets[0], flusher, stream)
    replays = 1 if in_place else max(1, min(MAX_GRAPH_CALLS, int(GRAPH_SECONDS / max(once, 1e-6))) // len(sets))
    calls = len(sets) * replays
    executable = capture([sets[i % len(sets)] for i in range(calls)], stream) if graph else None
    timed = Timed([], [], calls if graph else 0, [sample()])
    for _ in range(rounds):
        modes = ["eager", "graph"] if graph else ["eager"]
        shuffle.shuffle(modes)
        which = shuffle.randrange(len(sets))
        for mode in modes:
            if mode == "eager":
                before(which, stream)
                timed.eager.append(time_once(sets[which], flusher, stream))
            else:
                if in_place:
                    for i in range(len(sets)):
                        before(i, stream)
                    flusher.flush(stream)
                timed.graph.append(time_graph(executable, calls, stream))
        timed.telemetry.append(sample())
    gpu.synchronize()
    return timed
