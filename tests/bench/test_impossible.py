"""A time below the physical floor takes its contender out of the tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.impossible import refuse
from bench.performance import reason
from cake_backend.judge.floors import floor

H200 = {"capability": [9, 0], "sms": 132, "clock_khz": 1_980_000, "memory_clock_khz": 3_201_000, "memory_bus_bits": 6016, "l2_bytes": 62_914_560}


@dataclass
class Timed:
    name: str
    times: dict[str, list[float]]
    error: str | None = None
    checked: dict[str, str] = field(default_factory=dict)


def test_what_is_faster_than_the_chip_is_refused_and_has_no_times() -> None:
    work = {"flops": 2 * 8192**3, "bytes_read": 2 * 8192**2 * 2, "bytes_written": 8192**2 * 2}
    limit = floor(work, "bf16", H200)
    assert 1.0e-3 < limit.seconds < 1.1e-3 and limit.bound == "compute"
    honest, empty = Timed("honest", {"graph": [1.6e-3] * 3, "cold": [1.7e-3]}), Timed("empty", {"graph": [2e-6] * 3, "cold": [1.6e-3]})
    broken = Timed("broken", {"graph": [1e-6]}, error="wrong before timing")
    assert refuse([honest, empty, broken], limit) == ["empty"]
    assert honest.error is None and honest.times and empty.times == {} == broken.times and broken.error == "wrong before timing"
    assert empty.error is not None and "in mode graph" in empty.error and reason(empty.error).startswith("refused (below the physical floor: 2.00 us")
