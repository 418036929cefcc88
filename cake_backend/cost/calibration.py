"""The measured constants of a board, with what each rests on, and the corners of what the evidence allows.

A calibration is a JSON file beside this module. Only physical constants may stand in it, never a factor for one kernel.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

CORNERS = ("nominal", "optimistic", "pessimistic", "slow fill", "long latency")
"""Constant sets that one prediction is repeated with: all at their value, all at the fast or slow end, and two single families."""

_FILL = ("fill_bytes",)
_CLOCKS = ("ghz_max", "ghz_capped")
_LATENCY = ("tma_latency", "load_wait", "hbm_extra", "arrive_seen", "arrive_seen_remote", "store_read", "ld_l2", "ld_hbm")


@dataclass(frozen=True, slots=True)
class Constants:
    """One value of every constant; cycles of the SM clock unless the calibration's `unit` says otherwise."""

    sms: float
    ghz_max: float
    ghz_capped: float
    tensor_flop_16: float
    tensor_flop_8: float
    mma_fixed: float
    mma_group_issue: float
    mma_serial_gap: float
    fill_bytes: float
    tma_latency: float
    load_wait: float
    hbm_extra: float
    tma_issue: float
    expect_issue: float
    wait_ready: float
    arrive_issue: float
    arrive_seen: float
    arrive_seen_remote: float
    fence_gpu: float
    sync_128: float
    sync_256: float
    turn: float
    cluster_sync: float
    fence_proxy: float
    drain_issue: float
    fma: float
    alu: float
    imad: float
    mufu: float
    shfl: float
    cvt: float
    shfl_latency: float
    smem_bytes: float
    smem_warp: float
    smem_latency: float
    store_issue: float
    store_read: float
    ld_l2: float
    ld_hbm: float
    sector: float
    hbm_tb_s: float
    l2_tb_s: float
    l2_merge: float
    l2_mb: float
    tile_next: float
    prologue: float
    launch_us: float


NAMES: tuple[str, ...] = tuple(f.name for f in fields(Constants))


@dataclass(frozen=True, slots=True)
class Entry:
    """One constant as the file states it; `low` and `high` are its bounds, `faster` says which of them is the fast end."""

    value: float
    low: float
    high: float
    unit: str
    faster: str
    evidence: str
    source: str

    def end(self, fast: bool) -> float:
        """The bound at the fast or at the slow end."""
        return self.high if fast == (self.faster == "high") else self.low


@dataclass(frozen=True, slots=True)
class Calibration:
    """All constants of one board; `families` are the kernel families that were checked against measured times."""

    name: str
    device: str
    target: str
    version: int
    families: tuple[str, ...]
    residual: float
    entries: dict[str, Entry]

    def __hash__(self) -> int:
        return hash((self.name, self.version))

    def constants(self, corner: str = "nominal", **changes: float) -> Constants:
        """The constant set of a corner, with some values replaced (for asking what a cost is worth).

        Raises `KeyError` for an unknown corner, `TypeError` for an unknown constant.
        """
        if corner not in CORNERS:
            raise KeyError(f"corner {corner} is none of {', '.join(CORNERS)}")
        slow = _FILL if corner == "slow fill" else _LATENCY if corner == "long latency" else ()
        values: dict[str, float] = {}
        for name, entry in self.entries.items():
            if name in _CLOCKS:
                values[name] = entry.value  # what the clock is, is a question of power, not of the schedule
            elif corner in ("optimistic", "pessimistic"):
                values[name] = entry.end(corner == "optimistic")
            else:
                values[name] = entry.end(False) if name in slow else entry.value
        return Constants(**{**values, **changes})


def _entry(raw: dict[str, Any]) -> Entry:
    value = float(raw["value"])
    return Entry(value, float(raw.get("low", value)), float(raw.get("high", value)), raw["unit"], raw.get("faster", "low"), raw["evidence"], raw["source"])


def read(text: str) -> Calibration:
    """A calibration from its JSON text. Raises `ValueError` where a constant is missing, unknown, or outside its own bounds."""
    raw = json.loads(text)
    entries = {name: _entry(body) for name, body in raw["constants"].items()}
    missing, extra = sorted(set(NAMES) - set(entries)), sorted(set(entries) - set(NAMES))
    if missing or extra:
        raise ValueError(f"calibration {raw['name']}: missing {', '.join(missing) or 'nothing'}, unknown {', '.join(extra) or 'nothing'}")
    for name, entry in entries.items():
        if not entry.low <= entry.value <= entry.high or entry.value <= 0:
            raise ValueError(f"calibration {raw['name']}: {name} = {entry.value} is not between {entry.low} and {entry.high}")
    return Calibration(raw["name"], raw["device"], raw["target"], int(raw["version"]), tuple(raw["families"]), float(raw["residual"]), entries)


@cache
def calibrations() -> dict[str, Calibration]:
    """The calibrations that come with Cake, by board name."""
    folder = files("cake_backend.cost").joinpath("calibrations")
    found = [read(path.read_text(encoding="utf-8")) for path in sorted(folder.iterdir(), key=lambda p: p.name) if path.name.endswith(".json")]
    return {c.device: c for c in found}
