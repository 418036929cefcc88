"""What a run of the benchmark cost."""

from __future__ import annotations

from typing import Any


def tried(results: list[dict[str, Any]]) -> set[str]:
    """Names of the variants of Cake that a run timed or tried to."""
    return {c["name"] for r in results for c in r["contenders"] if c["kind"] == "cake"}


def spent(results: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """What a run cost: seconds that the device was held (checks, compilation of peers and timing) and timed, and how many variants of Cake it tried."""
    return {"gpu_seconds": round(seconds, 1), "timing_seconds": round(sum(float(r["seconds"]) for r in results), 1), "variants_tried": len(tried(results))}
