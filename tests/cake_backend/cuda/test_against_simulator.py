"""Generated text on the CPU emulator and the program on the NumPy simulator give the same numbers.

The two share the frontend and nothing behind it: the emulator executes the printed index arithmetic, descriptors and byte counts, the
simulator the ownership maps and the layout.
"""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from emulate import COMPILER, run

from cake_backend.cuda.launch_manifest import dtype_of
from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_ir.program import Program

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"

NUMPY: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn, "i32": np.int32, "i8": np.int8}
SCALARS: dict[str, Any] = {
    "M": 144, "N": 136, "K": 144, "S": 200, "B": 2, "H": 2, "NB": 2, "NP": 300, "NK": 300, "ROWS": 7, "eps": 1e-5, "T": 210, "NS": 3, "NS1": 4, "G": 3,
    "G1": 4, "F": 200, "R": 10, "scale_log2": 0.1, "scale": 0.1, "MAXM": 2, "BH": 3, "NW": 3,
}  # fmt: skip
OWN = {"decode_gemm": {"M": 13}, "cp_async_fp8": {"K": 160}, "gemm_int8_weights": {"K": 160}}

QUICK = ("layernorm_short_rows", "segment_mean", "cp_async_mbarrier", "chunk_scores")
SLOW = ("add_rmsnorm", "decode_gemm", "gelu_one_role", "quantise_rows", "softmax_two_pass", "transpose_tiles", "attention_causal", "attention_mma_sync", "attention_varlen", "cp_async_double_sync", "cp_async_fp8", "cp_async_single_sync", "gemm_activated_a",
        "gemm_aliased_epilogue", "gemm_deep", "gemm_grouped", "gemm_int8_weights", "gemm_multicast_2x2", "gemm_multicast_m", "gemm_pingpong",
        "gemm_resident_b", "gemm_split_k", "gemm_wgrad", "kmeans_resident_norms")  # fmt: skip


def tensors_of(program: Program, scalars: dict[str, Any]) -> dict[str, np.ndarray]:
    """Random tensors of the declared extents; integer ones are offsets."""
    rng = np.random.default_rng(0)
    out: dict[str, np.ndarray] = {}
    for name, p in program.tensors.items():
        assert p.extents, f"`{name}` declares no extents"
        shape = [int(scalars[e] if isinstance(e, str) else e) for e in p.extents]
        dtype = dtype_of(program, name)
        if dtype == "i32" and name in ("CU", "OFFS"):
            cuts = np.sort(rng.integers(0, scalars["T"] + 1, shape[0] - 2))
            out[name] = np.r_[0, cuts, scalars["T"]].astype(np.int32)
        elif dtype in ("i32", "i8"):
            out[name] = (rng.integers(-100, 100, shape) if dtype == "i8" else np.zeros(shape)).astype(NUMPY[dtype])
        else:
            out[name] = (rng.standard_normal(shape) * 0.5).astype(NUMPY[dtype])
    return out


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)])
def test_both_machines_agree(tmp_path: Path, name: str) -> None:
    compare(tmp_path, name, {})


@pytest.mark.parametrize("centroids", [250, pytest.param(100, marks=pytest.mark.slow), pytest.param(500, marks=pytest.mark.slow)])
def test_a_loop_over_an_array_of_accumulators_may_have_any_trip_count(tmp_path: Path, centroids: int) -> None:
    compare(tmp_path, "kmeans_two_accumulators", {"NK": centroids, "NP": 140})


@pytest.mark.parametrize("swizzle", ["32b", pytest.param("64b", marks=pytest.mark.slow), pytest.param("128b", marks=pytest.mark.slow)])
def test_single_rows_of_a_swizzled_view_are_read_with_their_own_turn(tmp_path: Path, swizzle: str) -> None:
    compare(tmp_path, "segment_mean", {}, change=("stage=STAGES)", f'stage=STAGES, swizzle="{swizzle}")'))


def compare(
    tmp_path: Path, name: str, own: dict[str, Any], targets: tuple[str, ...] = ("sm_80", "sm_89", "sm_90a"), change: tuple[str, str] = ("", "")
) -> None:
    text = (CORPUS / f"{name}.py").read_text("utf-8").replace(*change)
    template = parse(text, name).schedule()
    assert template is not None
    target = [t for t in template.targets if t in targets][-1]
    program = specialise(template, {}, target).program
    assert program is not None
    known = {**SCALARS, **{k: v for k, v in program.tunables.items() if isinstance(v, int)}, **OWN.get(name, {}), **own}
    scalars = {n: float(known[n]) if p.dtype == "f32" else int(known[n]) for n, p in program.scalars.items()}
    tensors = tensors_of(program, known)
    x, y = program.launch.cluster
    found = run(lower(program, source=text), tensors, scalars, tmp_path, clusters=2)
    expected = simulate(program, {n: a.copy() for n, a in tensors.items()}, scalars, ctas=2 * x * y)
    assert expected.ok, expected.faults
    changed = 0
    for n, before in tensors.items():
        a, b = found[n].astype(np.float64), np.asarray(expected.outputs[n]).astype(np.float64)
        changed += int((b != before.astype(np.float64)).sum())
        # One unit of the output type: sums may be taken in another order.
        assert np.allclose(a, b, rtol=1e-2, atol=4e-3 * max(1e-6, float(np.abs(b).max()))), f"`{n}` differs by {np.abs(a - b).max()}"
    assert changed, "the schedule wrote nothing"
