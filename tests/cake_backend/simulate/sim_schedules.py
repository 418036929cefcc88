"""Small schedules for one thing each, and how to run them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from cake_backend.simulate import SimResult, adversaries, simulate
from cake_ir import parse, specialise
from cake_ir.program import Program

BF16 = ml_dtypes.bfloat16
E4M3 = ml_dtypes.float8_e4m3fn


def program(text: str, **params: Any) -> Program:
    """The only schedule of a text, specialised."""
    module = parse(text, "test.py")
    assert not module.faults, [(f.code, f.message, f.span) for f in module.faults]
    found = specialise(module.schedule(None), params or None)
    assert found.program is not None, [(f.code, f.message, f.span) for f in found.faults]
    return found.program


def everywhere(p: Program, tensors: dict[str, Any], scalars: dict[str, Any] | None = None, **options: Any) -> SimResult:
    """The canonical run, after every adversary has given the same outputs without a fault."""
    first = simulate(p, tensors, scalars or {}, **options)
    assert first.ok, [(f.code, f.message, f.trace) for f in first.faults]
    for policy in adversaries(p):
        again = simulate(p, tensors, scalars or {}, policy=policy, **options)
        assert again.ok, (policy.name, [(f.code, f.message, f.trace) for f in again.faults])
        for name, want in first.outputs.items():
            assert again.outputs[name].tobytes() == want.tobytes(), (policy.name, name)
    return first


def caught(p: Program, tensors: dict[str, Any], scalars: dict[str, Any] | None = None, **options: Any) -> set[str]:
    """The codes of all faults that the adversaries find."""
    codes: set[str] = set()
    for policy in adversaries(p):
        codes |= {f.code for f in simulate(p, tensors, scalars or {}, policy=policy, **options).faults}
    return codes


def normal(seed: int, *shape: int, dtype: Any = BF16) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def nan(*shape: int, dtype: Any = BF16) -> Any:
    return np.full(shape, np.nan, np.float32).astype(dtype)


def close(got: Any, want: Any, tolerance: float) -> bool:
    """Whether the largest difference is within `tolerance` of the largest magnitude."""
    got, want = np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64)
    return bool(np.isfinite(got).all()) and float(np.abs(got - want).max()) <= tolerance * max(1e-30, float(np.abs(want).max()))
