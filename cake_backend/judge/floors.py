"""What the chip cannot beat: the least time for a task's arithmetic and traffic, from the device's own figures.

A measured time below this floor means that the measurement is wrong, whatever the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Operations (a multiply and an add are two) per clock and SM, dense. Tensor rates with f32 accumulation are those of the
# published peaks rounded up to a power of two; f32 counts 128 fused multiply-adds.
RATES: dict[str, dict[str, int]] = {
    "sm_80": {"bf16": 2048, "f16": 2048, "tf32": 1024, "f32": 256},
    "sm_86": {"bf16": 1024, "f16": 1024, "tf32": 512, "f32": 256},
    "sm_89": {"bf16": 1024, "f16": 1024, "tf32": 512, "f32": 256, "e4m3": 2048},
    "sm_90": {"bf16": 4096, "f16": 4096, "tf32": 2048, "f32": 256, "e4m3": 8192},
    "sm_100": {"bf16": 8192, "f16": 8192, "tf32": 4096, "f32": 256, "e4m3": 16384, "e2m1": 32768},
    "sm_103": {"bf16": 8192, "f16": 8192, "tf32": 4096, "f32": 256, "e4m3": 16384, "e2m1": 65536},
    "sm_120": {"bf16": 1024, "f16": 1024, "tf32": 512, "f32": 256, "e4m3": 2048, "e2m1": 8192},
    "sm_121": {"bf16": 1024, "f16": 1024, "tf32": 512, "f32": 256, "e4m3": 2048, "e2m1": 8192},
}
SLACK = 0.97


@dataclass(frozen=True, slots=True)
class Floor:
    """Least seconds for the arithmetic and for the traffic, and what each was computed from."""

    compute_s: float
    memory_s: float
    flops: int
    bytes: int
    flops_per_s: float
    bytes_per_s: float

    @property
    def seconds(self) -> float:
        return max(self.compute_s, self.memory_s)

    @property
    def bound(self) -> str:
        """Which of the two is larger: `compute` or `memory`."""
        return "compute" if self.compute_s >= self.memory_s else "memory"

    def to_json(self) -> dict[str, Any]:
        return {**{f: getattr(self, f) for f in self.__slots__}, "seconds": self.seconds, "bound": self.bound}


def floor(work: Mapping[str, int], unit: str, device: Mapping[str, Any]) -> Floor:
    """The floor of a task's work (`Task.work`) on a device as the worker describes it (`cake_backend.judge.device.describe`).

    The highest clock is assumed, and of the written bytes only those that the L2 cannot hold back: with a cold cache every input
    byte must be read, but the last written ones may still be in the cache when the kernel ends.
    """
    rates = RATES.get(f"sm_{device['capability'][0]}{device['capability'][1]}", {})
    flops_per_s = rates.get(unit, 0) * device["sms"] * device["clock_khz"] * 1e3
    bytes_per_s = device["memory_clock_khz"] * 1e3 * 2 * device["memory_bus_bits"] / 8
    traffic = work["bytes_read"] + max(0, work["bytes_written"] - device["l2_bytes"])
    return Floor(
        compute_s=work["flops"] / flops_per_s if flops_per_s else 0.0,
        memory_s=traffic / bytes_per_s if bytes_per_s else 0.0,
        flops=work["flops"],
        bytes=traffic,
        flops_per_s=flops_per_s,
        bytes_per_s=bytes_per_s,
    )


def below_floor(seconds: float, limit: Floor) -> bool:
    """Whether a time is impossible, with a little slack for the clock's and the counters' own inexactness."""
    return seconds < limit.seconds * SLACK
