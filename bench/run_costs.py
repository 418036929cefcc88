"""What a run of the benchmark cost."""

from __future__ import annotations

from typing import Any


def spent(results: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """What a run cost: seconds that the device was held (checks, compilation of peers and timing) and timed, and how many variants of Cake it tried."""
    tried = {c["name"] for r in results for c in r["contenders"] if c["kind"] == "cake"}
    return {"gpu_seconds": round(seconds, 1), "timing_seconds": round(sum(float(r["seconds"]) for r in results), 1), "variants_tried": len(tried)}
