"""A schedule of the corpus with what it takes to run it: tunables, argument shapes, and an oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
ROOT = Path(__file__).resolve().parents[3]
BF16, F16, F32, E4M3 = ml_dtypes.bfloat16, np.dtype("float16"), np.dtype("float32"), ml_dtypes.float8_e4m3fn
LOG2E = 1.4426950408889634


@dataclass(frozen=True)
class Filled:
    """Arguments of one run: tensors and scalars by name, and the outputs expected (float64 or integers)."""

    tensors: dict[str, Any]
    scalars: dict[str, Any]
    expected: dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One schedule: `file` from the repository's root, `params` small enough to simulate, `settings` axis values that give telling
    trip counts (the first has several tiles and a wrapped ring, the second one step a tile and tiles enough for one CTA to wrap its rings), `fill` arguments for one setting."""

    name: str
    file: str
    settings: tuple[dict[str, Any], ...]
    fill: Callable[[np.random.Generator, Mapping[str, Any]], Filled]
    params: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 4e-3
    ctas: int | None = None
    target: str | None = None

    def text(self) -> str:
        return _read(self.file)

    def arguments(self, setting: int, seed: int = 0) -> Filled:
        """Arguments of a setting by number; equal seeds give equal ones."""
        return self.fill(np.random.default_rng([seed, setting]), self.settings[setting])

    def grid(self, setting: int) -> int | None:
        """CTAs of a persistent launch for a setting: its own `ctas`, or the case's."""
        return self.settings[setting].get("ctas", self.ctas)

    def outputs(self) -> dict[str, str]:
        """The tensors that the oracle gives, as a request names outputs."""
        return {n: "which the oracle gives" for n in _expected(self)}

    def wrong(self, outputs: Mapping[str, Any], filled: Filled) -> str:
        """Where outputs differ from the oracle by more than the tolerance times the largest expected magnitude; empty if nowhere."""
        for name, want in filled.expected.items():
            got = np.asarray(outputs[name])
            if np.issubdtype(np.asarray(want).dtype, np.integer):
                if not np.array_equal(got, want):
                    return f"{name} differs in {np.count_nonzero(got != want)} elements"
                continue
            got, want = got.astype(np.float64), np.asarray(want, np.float64)
            odd = ~np.isfinite(want)  # the logarithm of an empty sum
            if odd.any():
                if not np.array_equal(got[odd], want[odd]):
                    return f"{name} lacks {np.count_nonzero(got[odd] != want[odd])} infinite elements"
                got, want = got[~odd], want[~odd]
            if not np.isfinite(got).all():
                return f"{name} has {np.count_nonzero(~np.isfinite(got))} elements that are not finite"
            error = float(np.abs(got - want).max() / max(1e-30, np.abs(want).max())) if want.size else 0.0
            if error > self.tolerance:
                return f"{name} is off by {error:.2e}"
        return ""


@lru_cache(maxsize=256)
def _outputs_of(fill: Callable[..., Filled], setting: tuple[tuple[str, Any], ...]) -> tuple[str, ...]:
    return tuple(n for n in fill(np.random.default_rng([0, 0]), dict(setting)).expected if n)


def _expected(case: Case) -> tuple[str, ...]:
    return _outputs_of(case.fill, tuple(case.settings[0].items()))


@lru_cache(maxsize=256)
def _read(file: str) -> str:
    """A schedule's text as it was when it was first asked for: one run of the benchmark sees one corpus."""
    return (ROOT / file).read_text("utf-8")


def corpus(name: str, settings: tuple[dict[str, Any], ...], fill: Callable[..., Filled], **rest: Any) -> Case:
    """The case of a schedule that lies in the benchmark's own corpus."""
    return Case(name, f"bench/verify/corpus/{name}.py", settings, fill, **rest)


def normal(rng: np.random.Generator, *shape: int, dtype: Any = BF16) -> Any:
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)


def empty(*shape: int, dtype: Any = BF16) -> Any:
    """An output to be overwritten: NaN, or -7 for integers."""
    return np.full(shape, -7, dtype) if np.issubdtype(np.dtype(dtype), np.integer) else np.full(shape, np.nan, np.float32).astype(dtype)


def f64(x: Any) -> Array:
    return np.asarray(x).astype(np.float64)


def softmax(x: Array) -> Array:
    """Over the last axis."""
    p = np.exp(x - x.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def offsets(lengths: tuple[int, ...]) -> Array:
    """0 and the running sums of `lengths`."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
