"""Run records whose numerics come from the judge's own comparison of real arrays, with one part made wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cake_backend.judge.numerics import compare_close
from cake_backend.task import Tolerance
from cake_ir import parse, specialise
from cake_ir.program import Program

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TOLERANCE = Tolerance("test", rtol=5e-3, scaled=5e-4)


@pytest.fixture(scope="session")
def example() -> Callable[..., Program]:
    """`example("gemm_ws", edits, STAGES=2)`: an example schedule, edited and specialised."""

    def make(name: str, *edits: tuple[str, str], **params: Any) -> Program:
        text = (EXAMPLES / f"{name}.py").read_text()
        for old, new in edits:
            assert old in text, old
            text = text.replace(old, new)
        done = specialise(parse(text, "test").schedule(None), params)
        assert done.program is not None, done.faults
        return done.program

    return make


@pytest.fixture(scope="session")
def case() -> Callable[..., dict[str, Any]]:
    """`case(spoil, M=.., N=.., K=..)`: one case of a GEMM whose output `spoil(out)` has changed; None leaves it right."""

    def make(spoil: Callable[[Any], None] | None = None, *, distribution: str = "normal", unwritten: int = 0, **axes: int) -> dict[str, Any]:
        rng = np.random.default_rng(3)
        shape = (axes["M"], axes["N"])
        ref = rng.standard_normal(shape) * np.sqrt(axes["K"])
        if distribution == "positive":
            ref = axes["K"] * (1.0 + 0.01 * rng.standard_normal(shape))
        out = ref.astype(np.float32)
        if spoil is not None:
            spoil(out)
        verdict = compare_close(out, ref, TOLERANCE)
        return {
            "case": "c0", "status": "PASSED" if verdict.ok else "INCORRECT_NUMERICAL", "summary": verdict.reason, "heldout": False, "shape": "s",
            "axes": axes, "distribution": distribution, "rows_checked": "all", "unwritten": {"C": unwritten} if unwritten else {}, "bands": {},
            "outputs": {"C": verdict.to_json()},
        }  # fmt: skip

    return make


@pytest.fixture(scope="session")
def wrong() -> Callable[..., dict[str, Any]]:
    """A record with these cases."""
    return lambda *cases: {"status": "INCORRECT_NUMERICAL", "numerics": {"label": "simulated", "ok": False, "cases": list(cases)}}
