"""The table of instruction counts of built candidates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.mix import KINDS, row, table
from cake_backend.toolchain import compile_cuda, nvrtc_version
from cake_backend.toolchain.sass import LoopReport, find_disassembler

LOOP = """
extern "C" __global__ void f(float* x, int n) {
  float acc = 0.f;
  #pragma unroll 1
  for (int i = threadIdx.x; i < n; i += 128) acc += exp2f(x[i] * 1.5f);
  x[threadIdx.x] = acc;
}
"""


def test_what_no_column_names_is_counted_as_other() -> None:
    loop = LoopReport(2, True, 20, {"HGMMA": 4}, {"HGMMA.64x128x16.F32.BF16": 4, "FFMA": 6, "FFMA.FTZ": 1, "ULEA.HI": 9}, None)
    found = row(loop)
    assert found["all"] == 20 and found["HGMMA"] == 4 and found["FFMA"] == 7 and found["other"] == 9
    assert list(found) == ["all", *KINDS, "other"]


def test_products_of_8_bit_floats_count_as_products() -> None:
    loop = LoopReport(2, True, 20, {"HGMMA": 4}, {"QGMMA.64x128x32.F32.E4M3.E4M3": 3, "HGMMA.64x128x16.F32.BF16": 1, "MEMBAR.ALL.CTA": 2}, None)
    assert row(loop)["HGMMA"] == 4 and row(loop)["MEMBAR"] == 2 and row(loop)["other"] == 14


@pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable" or find_disassembler() is None, reason="needs NVRTC and nvdisasm")
def test_a_kernel_without_mma_has_no_hot_loop_and_no_row(tmp_path: Path) -> None:
    build = compile_cuda(LOOP, "sm_90a", cache=False)
    assert build.cubin is not None, build.log
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "kernel.cubin").write_bytes(build.cubin)
    (tmp_path / "one" / "build.json").write_text(json.dumps({"name": "one"}))
    assert len(table(tmp_path, [])) == 2
