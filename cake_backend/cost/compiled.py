"""What the compiler's report tells the cost model: registers, spills, serialised MMA groups, device-wide fences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MEMBAR = "sass-membar"


@dataclass(frozen=True, slots=True)
class Compiled:
    """The part of a compile report that changes a prediction; `lines` are schedule lines of the remarks, by code."""

    registers: int | None
    spilled: int
    serialised: bool
    fences: bool
    codes: tuple[str, ...]
    lines: dict[str, int]


def compiled(build: Any) -> Compiled | None:
    """Evidence from a `Build`, or from its JSON form as a run record keeps it; None where there is no finished compilation."""
    report = build.to_json() if hasattr(build, "to_json") else build
    if not isinstance(report, dict) or not report.get("ok"):
        return None
    resources = report.get("resources") or {}
    remarks = [r for r in report.get("remarks") or () if isinstance(r, dict)]
    codes = tuple(dict.fromkeys(str(r.get("code")) for r in remarks))
    lines = {str(r["code"]): int(r["line"]) for r in reversed(remarks) if r.get("line")}
    return Compiled(
        registers=resources.get("registers") or None,
        spilled=int(resources.get("spill_stores", 0)) + int(resources.get("spill_loads", 0)),
        serialised=bool(report.get("serialised")) or any(r.get("serialises") for r in remarks),
        fences=MEMBAR in codes,
        codes=codes,
        lines=lines,
    )
