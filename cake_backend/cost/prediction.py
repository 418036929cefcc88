"""What the cost model says of one candidate: an interval of cycles, what binds, what it rests on, and where it abstains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cake_backend.cost.coverage import Withheld
from cake_backend.cost.reading import Reading


@dataclass(frozen=True, slots=True)
class Span3:
    """A low, a middle and a high value."""

    low: float
    mid: float
    high: float

    def scaled(self, factor: float) -> Span3:
        return Span3(self.low * factor, self.mid * factor, self.high * factor)

    def to_json(self) -> dict[str, float]:
        return {"low": self.low, "mid": self.mid, "high": self.high}


@dataclass(frozen=True, slots=True)
class Share:
    """Busy cycles of one unit as a share of the predicted cycles; `binding` where it may set the time, else it is only reported."""

    unit: str
    share: float
    binding: bool = True


@dataclass(frozen=True, slots=True)
class WaitShare:
    """How much of its time one member spends waiting at one line, and for what."""

    role: str
    member: int
    line: int
    what: str
    share: float


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock that turns cycles into seconds, with its source: a prediction of time is never given without one."""

    low_ghz: float
    ghz: float
    high_ghz: float
    source: str


@dataclass(frozen=True, slots=True)
class GridView:
    """The launch: blocks, how many an SM holds, rounds of the slowest slot, and the mean-over-maximum of the slots' work."""

    blocks: int
    tiles: int
    resident: int
    rounds: float
    balance: float
    limit: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """One prediction, labelled as such; `cycles` and `seconds` are None where the model abstains.

    `ratio` is predicted cycles over `floor` (the work of the `floor_unit` alone, spread evenly over all SMs): it is also given for
    boards without a calibration, for which there are no cycles. `corners` are the cycles under each constant set, `last` why the
    candidate sorts behind all others, `withheld` why the model does not rank it.
    """

    schedule: str
    device: str
    tier: str
    family: str
    calibration: str
    cycles: Span3 | None
    seconds: Span3 | None
    clock: Clock | None
    floor: float | None
    floor_unit: str
    ratio: float | None
    binding: str
    units: tuple[Share, ...]
    waits: tuple[WaitShare, ...]
    grid: GridView | None
    withheld: tuple[Withheld, ...]
    last: str
    settled: bool
    overlap: float
    corners: dict[str, float]
    milliseconds: float
    reading: Reading | None = None

    @property
    def covered(self) -> bool:
        """Whether the model ranks this candidate."""
        return self.cycles is not None and not [w for w in self.withheld if w.code not in ("R08", "R09")]

    @property
    def headroom(self) -> float | None:
        """The share of the time that would go if the floor were reached."""
        return 1.0 - 1.0 / self.ratio if self.ratio else None

    def to_json(self) -> dict[str, Any]:
        """A JSON value; every number in it is predicted."""
        return {
            "label": "predicted",
            "schedule": self.schedule,
            "device": self.device,
            "tier": self.tier,
            "family": self.family,
            "calibration": self.calibration,
            "covered": self.covered,
            "cycles": self.cycles.to_json() if self.cycles else None,
            "seconds": self.seconds.to_json() if self.seconds else None,
            "clock": {"low_ghz": self.clock.low_ghz, "ghz": self.clock.ghz, "high_ghz": self.clock.high_ghz, "source": self.clock.source}
            if self.clock
            else None,
            "floor_cycles": self.floor,
            "floor_unit": self.floor_unit,
            "ratio_to_floor": self.ratio,
            "headroom": self.headroom,
            "binding": self.binding,
            "units": [{"unit": u.unit, "share": round(u.share, 4), "binding": u.binding} for u in self.units],
            "waits": [{"role": w.role, "member": w.member, "line": w.line, "what": w.what, "share": round(w.share, 4)} for w in self.waits],
            "grid": {f: getattr(self.grid, f) for f in self.grid.__slots__} if self.grid else None,
            "withheld": [{"code": w.code, "text": w.text, "line": w.line} for w in self.withheld],
            "sorts_last": self.last or None,
            "settled": self.settled,
            "overlap": round(self.overlap, 4),
            "corners": {name: round(cycles) for name, cycles in self.corners.items()},
            "elapsed_ms": round(self.milliseconds, 2),
        }

    def sentence(self) -> str:
        """One line for people."""
        if self.cycles is None:
            reason = f"{self.withheld[0].code}: {self.withheld[0].text}" if self.withheld else "nothing to predict"
            told = f", {self.ratio:.2f}x its {self.floor_unit} floor" if self.ratio else ""
            return f"no prediction for {self.device} ({reason}){told}"
        held = f"; withheld from ranking ({self.withheld[0].code}: {self.withheld[0].text})" if not self.covered else ""
        time = f", {self.seconds.mid * 1e3:.3f} ms at {self.clock.ghz} GHz ({self.clock.source})" if self.seconds and self.clock else ""
        c = self.cycles
        return f"predicted {c.mid:,.0f} cycles ({c.low:,.0f} to {c.high:,.0f}) on {self.device}{time}; bound by {self.binding}{held}"
