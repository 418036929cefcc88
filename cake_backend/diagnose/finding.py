"""A finding of a diagnosis: a claim about this program, what it rests on, what to edit, and what would prove it wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ROUTES = ("candidate", "verifier", "cost model", "lowering", "vocabulary", "environment")
"""Where a fix belongs."""

CATALOGUE: dict[str, str] = {
    "B01": "tensor-bound", "B02": "power-capped", "B03": "load latency exposed", "B04": "ring too shallow", "B05": "L2-bound",
    "B06": "fill-bound", "B07": "HBM-bound", "B09": "tail", "B10": "grid under-fills the device", "B11": "occupancy cut by one resource",
    "B12": "prologue and launch", "B13": "device-wide fence in the loop", "B14": "MMA groups serialised", "B15": "spills", "B16": "register starvation",
    "B17": "special-function-bound", "B18": "ALU-bound", "B23": "overlap not known", "B24": "bank conflicts", "B26": "store round trip",
    "B27": "uncoalesced store", "B28": "tile switch bubble", "B29": "remote release latency", "B31": "early MMA wait", "B35": "mask in the steady loop",
    "B37": "noise-limited", "B38": "profile not trustworthy", "B39": "API-bound", "B40": "the model is off",
    "W01": "whole tiles wrong", "W02": "edge tiles wrong", "W03": "never written", "W04": "one member or slice wrong", "W05": "a lane pattern wrong",
    "W06": "wrong once the ring wraps", "W07": "a part of the sum is missing or counted twice", "W08": "non-finite values appear", "W09": "scattered errors",
    "W10": "wrong for one kind of data only", "W11": "wrong index", "W12": "differs between two runs",
    "W13": "a factor is missing or too much", "W14": "a term is missing or too much", "W15": "values stand in another place",
    "E01": "a wait does not end", "E02": "rejected before compiling", "E03": "the compiler refused", "E04": "not lowered", "E05": "writes outside its buffers",
    "E06": "writes to an input", "E07": "fault on the device", "E08": "not judged", "E09": "undecided",
}  # fmt: skip
"""The closed set of finding ids: B for time, W for wrong numbers, E for runs that ended early."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The most that removing the cost can save, as a share of the time, and how that was found. An upper bound, never a promise."""

    bound: float
    how: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `numbers` are what it rests on, each with its label in `basis`; `absent` names evidence that would help and is not there.

    An absent figure is never given as 0. `refuted_by` says what observation would show the claim wrong.
    """

    id: str
    claim: str
    route: str
    edit: str
    refuted_by: str
    line: int | None = None
    role: str | None = None
    numbers: dict[str, Any] = field(default_factory=dict)
    basis: tuple[str, ...] = ()
    gain: Gain | None = None
    absent: tuple[str, ...] = ()
    certain: bool = False

    def __post_init__(self) -> None:
        if self.id not in CATALOGUE or self.route not in ROUTES:
            raise ValueError(f"finding {self.id} with route {self.route}")

    @property
    def name(self) -> str:
        return CATALOGUE[self.id]

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {
            "id": self.id,
            "name": self.name,
            "claim": self.claim,
            "line": self.line,
            "role": self.role,
            "numbers": self.numbers,
            "basis": list(self.basis),
            "edit": self.edit,
            "gain": {"at_most": round(self.gain.bound, 4), "how": self.gain.how} if self.gain else None,
            "route": self.route,
            "refuted_by": self.refuted_by,
            "absent": list(self.absent),
            "certain": self.certain,
        }
