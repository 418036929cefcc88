"""A cubin that lacks a matrix product of the schedule is refused, with the line; real compilations, no GPU."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from cake_backend.cuda import lower as lowering
from cake_backend.cuda.mma_count import asked_mmas
from cake_backend.judge.building import build_program
from cake_backend.judge.status import Status
from cake_backend.toolchain import compile_cuda, nvrtc_version
from cake_backend.toolchain.gate import missing_mmas
from cake_backend.toolchain.sass import find_disassembler, read_sass
from cake_ir import parse, specialise
from cake_ir.program import Program
from cake_verify import verify_text
from cake_verify.rules.examples import LOOP, TILE, edit

ROOT = Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("toolchain_kernels", ROOT / "tests/cake_backend/toolchain/kernels.py")
assert spec is not None and spec.loader is not None
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)

pytestmark = pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable" or find_disassembler() is None, reason="needs NVRTC and nvdisasm")

TWICE = edit(
    TILE, ("shape=(64, 64), dtype=lm.bf16, swizzle=\"128b\"", "shape=(64, 16), dtype=lm.bf16, swizzle=\"32b\""),
    ("shape=(128, 64), dtype=lm.bf16, swizzle=\"128b\"", "shape=(8, 16), dtype=lm.bf16, swizzle=\"32b\""), ("shape=(64, 128), dtype=lm.f32", "shape=(64, 8), dtype=lm.f32"),
    ("        lm.mma(acc, a, b, init=True)", "        lm.mma(acc, a, b, init=True)\n        lm.mma(acc, a, b)"),
)  # fmt: skip


def program_of(text: str, **tunables: object) -> Program:
    made = specialise(parse(text).schedules[0], tunables)
    assert made.program is not None, made.faults
    return made.program


def test_the_assembler_still_merges_two_and_the_count_shows_it() -> None:
    build = compile_cuda(kernels.MERGED_WGMMA, "sm_90a", cache=False)
    assert build.ok and build.remarks == () and build.cubin is not None, "it says nothing about it"
    reports = read_sass(build.cubin)
    assert reports is not None
    asked = asked_mmas(program_of(TWICE))
    assert (asked["64x8x16"].least, reports["merged"].mma_shapes) == (2, {"64x8x16": 1})
    (remark,) = missing_mmas(reports["merged"], asked)
    first = next(n for n, line in enumerate(TWICE.splitlines(), 1) if "lm.mma(" in line)
    assert remark.severity == "error" and remark.line == first and f"lines {first}, {first + 1}" in remark.text


def test_a_build_with_a_merged_mma_is_refused_with_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    program, plain = program_of(TWICE), lowering.lower
    monkeypatch.setattr(lowering, "lower", lambda p, **options: replace(plain(p, **options), text=kernels.MERGED_WGMMA))  # a lowering without the fence
    built = build_program(program, TWICE, timeout=60)
    first = next(n for n, line in enumerate(TWICE.splitlines(), 1) if "lm.mma(" in line)
    assert built.status is Status.COMPILE_ERROR and built.summary.startswith(f"line {first}: ")
    assert built.cubins == () and built.report["ok"] is False and built.report["status"] == "miscompiled"
    assert [(r["code"], r["severity"], r["line"]) for r in built.report["remarks"]] == [("sass-mma-missing", "error", first)]


def test_the_gate_refuses_such_a_schedule_before_it_is_built() -> None:
    assert [d.code for d in verify_text(TWICE, suggest=False).errors] == ["H014"]


def test_the_lowering_keeps_both_by_its_fence() -> None:
    built = build_program(program_of(TWICE), TWICE, timeout=60)
    assert built.status is None and built.report["machine_code"]["tile"]["counts"]["HGMMA"] == 2


def test_loops_branches_and_unrolling_count_as_the_compiler_may_keep_them() -> None:
    def least(text: str) -> tuple[int, int]:
        asked = asked_mmas(program_of(text))["64x128x16"]
        return asked.least, asked.unit

    assert least(LOOP) == (4, 4)
    mma = "                lm.mma(acc, a[s], b[s], init=(k == 0))"
    assert least(edit(LOOP, (mma, f"                for i in lm.static_range(3):\n    {mma}"))) == (12, 4)
    branch = edit(LOOP, (mma, "                if k > 0:\n                    lm.mma(acc, a[s], b[s])\n                else:\n                    lm.mma(acc, a[s], b[s], init=True)"))
    assert least(branch) == (4, 4)
    assert least(edit(LOOP, (mma, f"                if k > 0:\n    {mma}"))) == (0, 4)


@pytest.mark.parametrize("name", ["gemm/hopper.py", "gemm_fp8/hopper.py"])
def test_shipped_kernels_hold_what_they_ask_for(name: str) -> None:
    text = (ROOT / "cake_kernels" / name).read_text("utf-8")
    built = build_program(program_of(text), text, timeout=120)
    assert built.status is None and built.cubins
    assert all(r["code"] != "sass-mma-missing" for r in built.report["remarks"])
