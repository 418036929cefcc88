"""The simulator and the generated CUDA text, run on the CPU by the emulator of the lowering's tests, give the same bits.

Operands of matrix products are small integers, so that their sums are exact in any order; what is left is every rounding, fused product,
order of a reduction, conversion and address.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sim_cases import BF16, EXAMPLES, FMHA_FULL, GEMM_SM80, GEMM_WS, GEMM_WS_ONE_CTA, KMEANS, RMSNORM, Case

from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate

CUDA = Path(__file__).resolve().parents[1] / "cuda"


def emulator() -> Any:
    """The emulator beside the lowering's tests; skips where there is no C++ compiler."""
    spec = importlib.util.spec_from_file_location("emulate", CUDA / "emulate.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules.get("emulate") or importlib.util.module_from_spec(spec)
    if "emulate" not in sys.modules:
        sys.modules["emulate"] = module
        spec.loader.exec_module(module)
    if module.COMPILER is None:
        pytest.skip("no C++ compiler on this machine")
    return module


def both(case: Case, tensors: dict[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Outputs of the simulator and of the generated text."""
    text = (EXAMPLES / case.file).read_text("utf-8")
    for old, new in case.edits:
        text = text.replace(old, new)
    p = case.program()
    size = p.launch.cluster[0] * p.launch.cluster[1]
    simulated = simulate(p, tensors, case.scalars, ctas=case.ctas)
    assert simulated.ok
    emulated = emulator().run(lower(p, source=text), tensors, case.scalars, folder, clusters=max(1, (case.ctas or size) // size))
    return simulated.outputs, emulated


def integers(case: Case, names: tuple[str, ...]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {n: rng.integers(-3, 4, a.shape).astype(BF16) if n in names else a for n, a in case.tensors.items()}


def differing(a: Any, b: Any) -> int:
    return int(
        (np.frombuffer(a.tobytes(), np.uint8).reshape(-1, a.itemsize) != np.frombuffer(b.tobytes(), np.uint8).reshape(-1, a.itemsize))
        .any(1)
        .sum()
    )


def test_rmsnorm_gives_the_same_bits(tmp_path: Path) -> None:
    simulated, generated = both(RMSNORM, RMSNORM.tensors, tmp_path)
    assert differing(simulated["Y"], generated["Y"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("case", [GEMM_WS, GEMM_WS_ONE_CTA, GEMM_SM80], ids=lambda c: c.name)
def test_a_gemm_of_integers_gives_the_same_bits(case: Case, tmp_path: Path) -> None:
    simulated, generated = both(case, integers(case, ("A", "B")), tmp_path)
    assert differing(simulated["C"], generated["C"]) == 0


@pytest.mark.slow
def test_an_assignment_of_integers_gives_the_same_bits(tmp_path: Path) -> None:
    simulated, generated = both(KMEANS, integers(KMEANS, ("X", "MU")), tmp_path)
    assert differing(simulated["IDX"], generated["IDX"]) == 0 and differing(simulated["DIST"], generated["DIST"]) == 0


@pytest.mark.slow
def test_attention_differs_by_the_last_bit_of_exp2_and_the_order_of_products_only(tmp_path: Path) -> None:
    simulated, generated = both(FMHA_FULL, FMHA_FULL.tensors, tmp_path)
    o, p = simulated["O"].astype(float), generated["O"].astype(float)
    assert differing(simulated["O"], generated["O"]) <= o.size // 500 and np.abs(o - p).max() <= 2.0**-7 * np.abs(p).max()
    assert np.abs(simulated["LSE"] - generated["LSE"]).max() < 1e-5
