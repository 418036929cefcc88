"""The one timing method of all benchmarks.

All contenders of a shape run in one process on the same input sets. Each round visits every (contender, mode) pair once, in a new random order.
Modes: `cold`, one launch after the L2 has been overwritten; `graph`, a CUDA graph of many launches over input sets that together exceed
the L2 several times (what a served model sees). Ratios are medians of the rounds' own ratios.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from cake_backend.judge.statistics import ratio_interval, summarise

FLUSH_BYTES = 512 << 20  # long enough to write that a slow host has queued the launch behind it
GRAPH_SECONDS = 8e-3
MAX_CALLS = 400
WARMUP = 3
Call = Callable[[int], Any]


@dataclass(slots=True)
class Contender:
    """One implementation: `call(i)` enqueues it on input set i on torch's current stream. `kind`: cake, hand or peer.

    `outputs` gives the key of the set under which an output is left, where that is not the output's own name: what allocates its
    result must not replace the tensor that others write to. `compared` is False where it computes something else, said in the note.
    """

    name: str
    call: Call
    kind: str = "peer"
    note: str = ""
    graph: bool = True
    facts: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    compared: bool = True
    times: dict[str, list[float]] = field(default_factory=dict)
    error: str | None = None
    checked: dict[str, Any] = field(default_factory=dict)


class ContextLost(RuntimeError):
    """A kernel faulted and took the device context with it: nothing else can run in this process. `name` is the contender."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name, self.reason = name, reason


def failed(contender: Contender, error: Exception) -> None:
    """Take a contender out; raises ContextLost where its failure is everybody's."""
    contender.error, contender.times = f"{type(error).__name__}: {error}".splitlines()[0][:300], {}
    try:
        torch.cuda.synchronize()
    except Exception:  # whatever type a torch build raises for a faulted context
        raise ContextLost(contender.name, contender.error) from error


class Clock:
    """Events, flushing and graphs on one device."""

    def __init__(self) -> None:
        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        self._value = 0

    def cold(self, call: Call, which: int) -> float:
        """Seconds of one launch with a cold L2."""
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._value = (self._value + 1) % 256
        self._flush.fill_(self._value)
        start.record()
        call(which)
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e-3

    def replay(self, graph: torch.cuda.CUDAGraph, calls: int) -> float:
        """Seconds a call of one replay."""
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) * 1e-3 / calls


def capture(call: Call, sets: int, calls: int) -> torch.cuda.CUDAGraph:
    """A graph of `calls` launches that rotates over the input sets."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(calls):
            call(i % sets)
    return graph


def measure(
    contenders: Sequence[Contender], sets: int, *, rounds: int, seed: int, telemetry: Callable[[], dict[str, int]], budget_s: float
) -> dict[str, Any]:
    """Fill every contender's `times` (seconds, one value a round and mode); a contender that fails is left with its `error`.

    Stops early, after a whole round, when `budget_s` is spent. Returns what was done.
    """
    clock, shuffle = Clock(), random.Random(seed)
    graphs: dict[str, tuple[torch.cuda.CUDAGraph, int]] = {}
    started = time.monotonic()
    for c in contenders:
        if c.error is not None:
            continue
        try:
            for i in range(WARMUP):
                c.call(i % sets)
            torch.cuda.synchronize()
            once = clock.cold(c.call, 0)
            calls = sets * max(1, min(MAX_CALLS, int(GRAPH_SECONDS / max(once, 1e-6))) // sets)
            if c.graph:
                graphs[c.name] = (capture(c.call, sets, calls), calls)
            c.times = {"cold": [], "graph": []} if c.graph else {"cold": []}
        except Exception as error:  # a foreign peer may fail in any way, and must not take the others with it
            failed(c, error)
    entries = [(c, mode) for c in contenders if c.error is None for mode in c.times]
    samples = [telemetry()]
    done = 0
    for _ in range(rounds):
        if time.monotonic() - started > budget_s:
            break
        shuffle.shuffle(entries)
        for c, mode in entries:
            try:
                seconds = clock.cold(c.call, shuffle.randrange(sets)) if mode == "cold" else clock.replay(*graphs[c.name])
            except Exception as error:  # as above; what failed in the middle of timing leaves no times
                failed(c, error)
                continue
            if c.error is None:
                c.times[mode].append(seconds)
        samples.append(telemetry())
        done += 1
    torch.cuda.synchronize()
    return {"rounds": done, "sets": sets, "telemetry": samples, "seconds": time.monotonic() - started,
            "graph_calls": {n: calls for n, (_, calls) in graphs.items()}}  # fmt: skip


def table(contenders: Sequence[Contender], *, flops: int, nbytes: int, baselines: Sequence[str]) -> list[dict[str, Any]]:
    """One row per contender: summaries per mode, rates, and how many times faster it is than each baseline (median of round ratios)."""
    by_name = {c.name: c for c in contenders}
    rows = []
    for c in contenders:
        row: dict[str, Any] = {"name": c.name, "kind": c.kind, "note": c.note, "error": c.error, "checked": c.checked, **c.facts}
        for mode, times in c.times.items():
            if not times:
                continue
            s = summarise(times)
            row[mode] = {**s, "tflops": flops / s["median_s"] / 1e12, "gbytes_per_s": nbytes / s["median_s"] / 1e9, "times_s": times}
            row[mode]["speedup_over"] = {
                b: ratio_interval(by_name[b].times[mode], times)
                for b in baselines
                if b in by_name and b != c.name and len(by_name[b].times.get(mode, ())) == len(times)
            }
        rows.append(row)
    return rows
