"""Programs whose answer depends on which thread owns what: the generated text on the CPU and the simulator give the same bytes.

Each of these was wrong or missing once; programs that only move a fragment out and back in cannot tell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from emulate import COMPILER, run
from forms import PROGRAMS

from cake_backend.cuda.launch_manifest import dtype_of
from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_ir.program import Program

pytestmark = [pytest.mark.slow, pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")]

NUMPY: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
                         "i8": np.int8, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "bool": np.bool_}  # fmt: skip
CASES = (
    ("memory", "view_in_e4m3_a"),  # four neighbouring columns a register
    ("memory", "view_out_tf32_b"),  # one
    ("memory", "view_turned_i64_acc"),  # 64-bit values stay integers
    ("memory", "view_in_bool_acc"),
    ("values", "cast_i64_i8"),  # a register of the result spans two runs
    ("values", "form_bf16_b_acc"),
    ("values", "cast_f32_f16_rz"),
    ("values", "cast_f32_bf16_rz"),
    ("reductions", "across_f32_add"),
    ("reductions", "rows_form"),
    ("copies", "cp_async_bf16_None"),  # a mask that parts a piece
    ("updates", "send_e4m3_b"),
    ("products", "wgmma_tf32_tf32_f32_rs"),  # operands as bits, not as numbers
    ("products", "mma_e4m3_e5m2_f16_(2, 2)"),
)


def tensors_of(p: Program) -> dict[str, np.ndarray]:
    """Random values; integers reach beyond 24 bits where their type does."""
    rng = np.random.default_rng(1)
    out: dict[str, np.ndarray] = {}
    for name, q in p.tensors.items():
        dtype, shape = dtype_of(p, name), tuple(int(e) for e in q.extents)
        kind = np.dtype(NUMPY[dtype])
        if dtype == "bool":
            out[name] = rng.integers(0, 2, shape).astype(bool)
        elif kind.kind in "iu":
            out[name] = rng.integers(-(2 ** (8 * kind.itemsize - 2)), 2 ** (8 * kind.itemsize - 2), shape).astype(kind)
        else:
            out[name] = rng.standard_normal(shape).astype(np.float32).astype(kind)
        if dtype == "tf32":
            out[name] = (out[name].view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return out


@pytest.mark.parametrize(("part", "name"), CASES, ids=lambda x: x)
def test_the_text_and_the_simulator_agree(tmp_path: Path, part: str, name: str) -> None:
    template = parse(PROGRAMS[part][name], name).schedule()
    assert template is not None
    p = specialise(template, {}, "sm_90a").program
    assert p is not None
    tensors = tensors_of(p)
    expected = simulate(p, {n: a.copy() for n, a in tensors.items()}, {})
    assert expected.ok, expected.faults
    found = run(lower(p), tensors, {}, tmp_path)
    changed = False
    for n, before in tensors.items():
        a, b = expected.outputs[n], found[n]
        changed = changed or a.tobytes() != before.tobytes()
        if part == "products" and n == "C":  # the order of sums is the instruction's own
            np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=2e-2 if a.itemsize == 2 else 1e-4, atol=2e-2)
        else:
            assert a.tobytes() == b.tobytes(), f"`{n}` differs in {np.count_nonzero(a != b)} elements"
    assert changed
