"""Block-scaled mma.sync: the generated text gives each lane the scales that the instruction asks it for, and compiles to one QMMA a tile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulate import COMPILER, run

from bench.verify.cases import CASES
from cake_backend.cuda.faults import NotLowered
from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_backend.toolchain import compile_cuda, nvrtc_version
from cake_ir import parse, specialise
from cake_ir.program import Program

CASE = CASES["mxf8_mma_sync_gemm"]


def program(text: str, target: str = "sm_120a", **params: int) -> Program:
    found = specialise(parse(text, "t").schedules[0], params, target).program
    assert found is not None
    return found


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
@pytest.mark.parametrize("first", ["j", pytest.param("3 - j", marks=pytest.mark.slow)])
def test_the_text_and_the_simulator_take_the_same_scales(tmp_path: Path, first: str) -> None:
    p = program(CASE.text().replace("first=j", f"first={first}"), BM=64)
    filled = CASE.arguments(0)
    found = run(lower(p, source=CASE.text()), filled.tensors, filled.scalars, tmp_path, clusters=2)
    expected = simulate(p, filled.tensors, filled.scalars, ctas=2)
    assert expected.ok
    got, want = found["C"].astype(np.float64), expected.outputs["C"].astype(np.float64)
    assert np.allclose(got, want, rtol=1e-2, atol=4e-3 * np.abs(want).max())
    assert bool(CASE.wrong(found, filled)) == (first != "j")


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")
def test_scales_that_begin_at_different_bytes_are_shifted_into_place(tmp_path: Path) -> None:
    p = program(CASE.text().replace("wb, block=32, dtype=lm.ue8m0, layout=\"frag_row\", first=j", "wb, block=32, dtype=lm.ue8m0, layout=\"frag_row\", first=(j + 1) % 4"), BM=64)
    filled = CASE.arguments(0)
    found = run(lower(p, source=CASE.text()), filled.tensors, filled.scalars, tmp_path, clusters=2)
    want = simulate(p, filled.tensors, filled.scalars, ctas=2).outputs["C"].astype(np.float64)
    assert np.allclose(found["C"].astype(np.float64), want, rtol=1e-2, atol=4e-3 * np.abs(want).max())


@pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable", reason="no NVRTC on this machine")
@pytest.mark.parametrize("target", ["sm_120a", pytest.param("sm_121a", marks=pytest.mark.slow)])
def test_it_compiles_without_spills(target: str) -> None:
    done = lower(program(CASE.text(), target), source=CASE.text())
    assert done.text.count("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0") == 4
    build = compile_cuda(done.text, target, cache=False)
    assert build.ok, build.log
    assert "0 bytes spill stores" in build.log


def test_what_is_not_lowered_says_so() -> None:
    for name, target, what in (("tcgen05_mxf8_gemm", "sm_100a", "tensor memory"), ("nvf4_mma_sync_gemm", "sm_120a", "e2m1")):
        case = CASES[name]
        with pytest.raises(NotLowered) as refused:
            lower(program(case.text(), target, **case.params))
        assert refused.value.fault.code == "H091" and what in refused.value.fault.message
