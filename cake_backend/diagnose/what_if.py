"""Gain bounds by re-simulation: the same launch read again with one cost taken away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cake_backend.cost.calibration import Constants
from cake_backend.cost.demand import Demand, Piece
from cake_backend.cost.machine import Evidence
from cake_backend.cost.predict import Setting
from cake_backend.cost.reading import Reading, Unreadable

_FAST = 1e9


@dataclass(slots=True)
class WhatIf:
    """Readings of one launch: as it is, and with something changed. Cycles are those of the whole launch."""

    setting: Setting
    base: float
    reading: Reading

    @staticmethod
    def of(setting: Setting) -> WhatIf | None:
        """The launch as it is; None where it cannot be read."""
        try:
            base, reading = setting.cycles(setting.calibration.constants())
        except Unreadable:
            return None
        return WhatIf(setting, base, reading)

    @property
    def program(self) -> Any:
        return self.setting.subject.program

    def constants(self, **changes: float) -> Constants:
        """The nominal constants with some replaced."""
        return self.setting.calibration.constants("nominal", **changes)

    def without(self, **changes: float) -> float:
        """The share of the time that goes when constants change: 0 for none."""
        return self._gain(self.setting, self.constants(**changes), None)

    def without_evidence(self, **changes: Any) -> float:
        """The share that goes when part of the evidence (serialisation, fences) is taken away."""
        return self._gain(self.setting, self.constants(), replace(self.setting.evidence(), **changes))

    def with_pieces(self, change: Callable[[Demand, Piece], Piece | None]) -> float:
        """The share that goes when pieces of the work are changed, or dropped (None)."""
        demands = {i: replace(d, pieces=tuple(q for p in d.pieces if (q := change(d, p)) is not None)) for i, d in self.setting.subject.demands.items()}
        setting = replace(self.setting, subject=replace(self.setting.subject, demands=demands))
        return self._gain(setting, self.constants(), None)

    def _gain(self, setting: Setting, constants: Constants, evidence: Evidence | None) -> float:
        try:
            cycles, _ = setting.cycles(constants, evidence)
        except Unreadable:
            return 0.0
        return max(0.0, 1.0 - cycles / self.base)

    def load_latency(self) -> float:
        """What late loads cost: all latency of copies and of hand-overs gone."""
        return self.without(tma_latency=0.0, load_wait=0.0, hbm_extra=0.0, arrive_seen=0.0, arrive_seen_remote=0.0)

    def l2(self) -> float:
        return self.without(l2_tb_s=_FAST)

    def fill(self) -> float:
        """What the rate into one SM costs, the L2's own rate left as it is."""
        return self.without(fill_bytes=_FAST, l2_tb_s=_FAST)

    def hbm(self) -> float:
        return self.without(hbm_tb_s=_FAST)

    def store_read(self) -> float:
        return self.without(store_read=0.0)

    def prologue(self) -> float:
        return self.without(prologue=0.0)

    def remote(self) -> float:
        c = self.constants()
        return self.without(arrive_seen_remote=c.arrive_seen)

    def pipe(self, name: str) -> float:
        return self.without(**{name: 1e-9}, **({"cvt": 1e-9} if name == "alu" else {}))
