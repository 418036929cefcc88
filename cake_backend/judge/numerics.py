"""Is an output right? Element by element against a float64 oracle, with failures located.

One formula for all tasks: |out - ref| <= atol + rtol |ref| + scaled * s. NaN and infinities must stand exactly where the oracle has
them. A small share of failures can be allowed, but never a large one in one tile, and never a single large error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from cake_backend.judge.relation import Relation, relation
from cake_backend.task import Tolerance

Array = np.ndarray[Any, Any]

CLUSTER_SHARE = 0.5
CLUSTER_LEAST = 8
MAX_TILES = 16


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """How one output compares. `worst` is the largest error in units of the tolerance (inf for a class mismatch)."""

    ok: bool
    reason: str
    elements: int
    failures: int
    worst: float
    worst_at: dict[str, Any] | None = None
    nonfinite_mismatches: int = 0
    clusters: tuple[dict[str, Any], ...] = ()
    pattern: str = ""
    rms_error: float = 0.0
    extra: dict[str, Any] = field(default_factory=dict)
    relation: Relation | None = None

    def to_json(self) -> dict[str, Any]:
        out = {f: getattr(self, f) for f in self.__slots__}
        out["clusters"] = list(self.clusters)
        out["relation"] = self.relation.to_json() if self.relation is not None else None
        for key in ("worst", "rms_error"):
            out[key] = out[key] if np.isfinite(out[key]) else str(out[key])  # JSON has no infinity
        return out


def compare_close(
    out: Array, ref: Array, tolerance: Tolerance, *, scale: Array | None = None, rows: Array | None = None
) -> OutputVerdict:
    """Compare (rows, rest) arrays; `rows` gives the true row numbers where only some were computed.

    `out` is in its own element type, `ref` in float64, `scale` per row or per element. Raises ValueError where lengths differ.
    """
    out2, ref2 = _two_dims(out), _two_dims(ref)
    if out2.shape != ref2.shape:
        raise ValueError(f"output of shape {out2.shape}, reference of shape {ref2.shape}")
    numbers = np.arange(len(ref2)) if rows is None else np.asarray(rows)
    if len(numbers) != len(ref2):
        raise ValueError(f"{len(numbers)} row numbers for {len(ref2)} rows")
    if ref2.size == 0:
        return OutputVerdict(True, "no elements", 0, 0, 0.0)
    got = out2.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        kept = ref2.astype(out2.dtype).astype(np.float64)  # what the oracle's value becomes in the output's type
    mismatch = (np.isnan(got) != np.isnan(kept)) | ((np.isinf(got) | np.isinf(kept)) & (got != kept) & ~np.isnan(got))
    finite = np.isfinite(got) & np.isfinite(kept)
    magnitude = _magnitude(ref2, finite, scale)
    bound = tolerance.atol + tolerance.rtol * np.abs(ref2) + tolerance.scaled * magnitude
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(finite, np.abs(got - ref2), 0.0)
        excess = np.where(error > 0, error / bound, 0.0)
    excess[mismatch] = np.inf
    verdict = _judge(got, ref2, excess, mismatch, tolerance, numbers, np.sqrt(np.mean(error**2)))
    return verdict if verdict.ok else replace(verdict, relation=relation(got, ref2, np.broadcast_to(bound, ref2.shape), excess > 1.0, numbers))


def compare_exact(out: Array, ref: Array, tolerance: Tolerance, *, rows: Array | None = None) -> OutputVerdict:
    """Every element equal (NaN equals NaN)."""
    out2, ref2 = _two_dims(out), _two_dims(ref)
    if out2.shape != ref2.shape:
        raise ValueError(f"output of shape {out2.shape}, reference of shape {ref2.shape}")
    if ref2.size == 0:
        return OutputVerdict(True, "no elements", 0, 0, 0.0)
    numbers = np.arange(len(ref2)) if rows is None else np.asarray(rows)
    kept = ref2.astype(out2.dtype)
    same = (out2 == kept) | ((out2 != out2) & (kept != kept))
    excess = np.where(same, 0.0, np.inf)
    got = out2.astype(np.float64)
    right = ref2.astype(np.float64)
    verdict = _judge(got, right, excess, ~same, tolerance, numbers, 0.0)
    return verdict if verdict.ok else replace(verdict, relation=relation(got, right, np.zeros_like(right), ~same, numbers))


def compare_argmin(
    out: Array, ref: Array, gap: Array, best: Array, tolerance: Tolerance, *, limit: int, scale: Array, exact: bool, rows: Array
) -> OutputVerdict:
    """Judge chosen indices by the score they reach.

    `gap` is the chosen score minus the best (NaN where the index is outside 0..limit or nothing is below +inf), `best` the best
    score. With `exact` a gap of 0 at another index is a tie that did not go to the lowest index.
    """
    chosen, expected = _two_dims(out)[:, 0].astype(np.int64), _two_dims(ref)[:, 0].astype(np.int64)
    if not len(expected):
        return OutputVerdict(True, "no elements", 0, 0, 0.0)
    outside = (chosen < 0) | (chosen >= limit)
    hopeless = ~np.isfinite(best)
    bound = tolerance.atol + tolerance.rtol * np.abs(np.where(hopeless, 0.0, best)) + tolerance.scaled * scale
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(gap > 0, gap / bound, 0.0)
    wrong = chosen != expected
    excess = np.where(np.isnan(gap) & wrong, np.inf, excess)
    excess[outside | (hopeless & wrong)] = np.inf
    tie = wrong & (gap == 0)
    if exact:
        excess[tie] = np.inf
    verdict = _judge(
        chosen[:, None].astype(float), expected[:, None].astype(float), excess[:, None], outside[:, None], tolerance, rows, 0.0
    )
    extra = {
        "different_index": int(wrong.sum()),
        "out_of_range": int(outside.sum()),
        "ties_not_lowest": int(tie.sum()) if exact else None,
        "largest_gap": float(np.nanmax(np.where(np.isfinite(gap), gap, 0.0))),
    }
    reason = verdict.reason
    if not verdict.ok and outside.any():
        reason = f"{int(outside.sum())} of {len(chosen)} indices are outside 0 to {limit - 1}; {reason}"
    elif not verdict.ok and exact and tie.any():
        reason = f"{int(tie.sum())} ties did not go to the lowest index; {reason}"
    return OutputVerdict(
        verdict.ok, reason, verdict.elements, verdict.failures, verdict.worst, verdict.worst_at, 0, verdict.clusters,
        verdict.pattern, 0.0, extra,
    )  # fmt: skip


def count_poison(raw: bytes | memoryview, poison: int, itemsize: int) -> int:
    """Elements of an output that still hold the 32-bit poison pattern bit for bit, so were never written."""
    if itemsize >= 4:
        words = np.frombuffer(raw, np.uint32)
        hit = words == np.uint32(poison)
        return int(hit.reshape(-1, itemsize // 4).all(axis=1).sum()) if itemsize > 4 else int(hit.sum())
    if itemsize == 2:
        halves = np.frombuffer(raw, np.uint16)
        return int((halves[0::2] == (poison & 0xFFFF)).sum() + (halves[1::2] == (poison >> 16)).sum())
    return 0  # a byte pattern is too likely among honest values


def _two_dims(array: Array) -> Array:
    return array.reshape(len(array), prod(array.shape[1:])) if array.ndim != 1 else array[:, None]


def _magnitude(ref: Array, finite: Array, scale: Array | None) -> Array:
    if scale is not None:
        s = _two_dims(np.asarray(scale))
        return np.where(np.isfinite(s), s, 0.0)
    square = np.where(finite, ref, 0.0) ** 2
    return np.sqrt(square.sum(axis=1, keepdims=True) / np.maximum(finite.sum(axis=1, keepdims=True), 1))


def _judge(
    got: Array, ref: Array, excess: Array, mismatch: Array, tolerance: Tolerance, rows: Array, rms_error: float
) -> OutputVerdict:
    bad = excess > 1.0
    failures, elements = int(bad.sum()), excess.size
    worst = float(excess.max())
    at = np.unravel_index(int(excess.argmax()), excess.shape)
    where = {
        "row": int(rows[at[0]]),
        "column": int(at[1]),
        "found": _plain(got[at]),
        "expected": _plain(ref[at]),
        "error_over_tolerance": _plain(worst),
    }
    clusters = _clusters(bad, rows, tolerance.tile) if failures else ()
    reasons = []
    if (wrong := int((mismatch & bad).sum())) > 0:
        reasons.append(f"{wrong} elements have another class (NaN, infinity, finite) or value than the oracle's")
    if failures > elements * (1.0 - tolerance.ratio):
        reasons.append(f"{failures} of {elements} elements are outside the tolerance")
    if worst > tolerance.cap and not reasons:
        reasons.append(f"an error of {worst:.3g} times the tolerance, at most {tolerance.cap:g} allowed anywhere")
    if clusters and not reasons:
        reasons.append(f"{len(clusters)} tiles are wrong for the most part")
    elif clusters:
        reasons.append("clustered")
    ok = not reasons
    return OutputVerdict(
        ok=ok,
        reason="within tolerance" if ok else "; ".join(reasons),
        elements=elements,
        failures=failures,
        worst=worst,
        worst_at=where if worst > 0 else None,
        nonfinite_mismatches=wrong,
        clusters=clusters,
        pattern="" if not failures else describe_pattern(bad, rows),
        rms_error=float(rms_error),
    )


def _plain(x: Any) -> float | str:
    value = float(x)
    return value if np.isfinite(value) else str(value)


def _clusters(bad: Array, rows: Array, tile: tuple[int, int]) -> tuple[dict[str, Any], ...]:
    """Tiles in which at least half of the elements seen are wrong, the worst first."""
    height, width = tile
    tile_row = np.asarray(rows) // height
    found = []
    for r in np.unique(tile_row):
        part = bad[tile_row == r]
        for c in range(0, bad.shape[1], width):
            block = part[:, c : c + width]
            share = float(block.mean())
            if share >= CLUSTER_SHARE and block.size >= CLUSTER_LEAST:
                found.append({"row": int(r) * height, "column": c, "rows": height, "columns": block.shape[1], "share": share})
    found.sort(key=lambda t: -t["share"])
    return tuple(found[:MAX_TILES])


def describe_pattern(bad: Array, rows: Array) -> str:
    """Words for where the failures lie: the enclosing box, and the residues that they share."""
    r, c = np.nonzero(bad)
    true_rows = np.asarray(rows)[r]
    parts = [f"rows {true_rows.min()} to {true_rows.max()}"]
    if bad.shape[1] > 1:
        parts.append(f"columns {c.min()} to {c.max()}")
    for name, values, extent in (("row", true_rows, int(np.max(rows)) + 1), ("column", c, bad.shape[1])):
        for modulus in (8, 16, 32, 64, 128, 256):
            if extent < 2 * modulus or len(values) < 8:
                continue
            residues = np.unique(values % modulus)
            if len(residues) <= modulus // 2:
                shown = ", ".join(map(str, residues[:8])) + (", .." if len(residues) > 8 else "")
                parts.append(f"every failing {name} modulo {modulus} is in {{{shown}}}")
                break
    return "; ".join(parts)
