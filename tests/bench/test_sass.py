"""The machine-code check: real kernels pass it, and what a schedule asks for that is not there, or did not ask for, is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import cake_kernels
from bench.sass import asked, problems
from cake_backend.cuda.lower import lower
from cake_backend.toolchain import compile_cuda, nvrtc_version
from cake_backend.toolchain.flow import natural_loops, split_blocks
from cake_backend.toolchain.sass import LoopReport, SassReport, find_disassembler, read_sass
from cake_ir import parse, specialise
from cake_ir.program import Program

needs_tools = pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable" or find_disassembler() is None, reason="needs NVRTC and nvdisasm")
KERNELS = {
    "gemm/hopper": {"HGMMA": 4, "UTMALDG": 2},  # a pass of the K loop: 64 columns of 16, a box of A and one of B
    "kmeans_assign/hopper": {"HGMMA": 8},
    "gemm/ampere": {"HMMA": 32},  # a warp 64 x 32 of the tile, 32 columns of K
}


@cache
def program(name: str, params: tuple[tuple[str, Any], ...] = ()) -> Program:
    text = next(s.text for s in cake_kernels.schedules() if f"{s.family}/{s.name}" == name)
    template = parse(text, name).schedule()
    assert template is not None
    made = specialise(template, dict(params), "sm_90a").program
    assert made is not None
    return made


@cache
def report(name: str) -> SassReport:
    build = compile_cuda(lower(program(name)).text, "sm_90a")
    assert build.cubin is not None, build.log
    found = read_sass(build.cubin)
    assert found is not None
    return next(iter(found.values()))


def changed(r: SassReport, which: int, counts: Mapping[str, int]) -> SassReport:
    loops: list[LoopReport] = list(r.loops)
    loops[which] = replace(loops[which], counts={**loops[which].counts, **counts})
    return replace(r, loops=tuple(loops))


@needs_tools
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_holds_what_its_schedule_asks_for(name: str) -> None:
    wanted = {k: n for a in asked(program(name)) if a.line and a.innermost for k, n in a.counts.items()}
    assert {k: wanted.get(k) for k in KERNELS[name]} == KERNELS[name]
    assert not problems(program(name), report(name))


@needs_tools
def test_products_that_the_assembler_merged_are_missed() -> None:
    hot = max(range(len(report("gemm/hopper").loops)), key=lambda i: (report("gemm/hopper").loops[i].depth, report("gemm/hopper").loops[i].mmas))
    merged = changed(report("gemm/hopper"), hot, {"HGMMA": 3})
    merged = replace(merged, counts={**merged.counts, "HGMMA": 3})
    found = "\n".join(problems(program("gemm/hopper"), merged))
    assert "asks for 4 HGMMA a pass" in found and "some were merged or dropped" in found


@needs_tools
def test_another_schedule_does_not_pass_for_this_one() -> None:
    deeper = program("gemm/hopper", (("BK", 128), ("STAGES", 2)))
    assert any("asks for 8 HGMMA a pass" in p for p in problems(deeper, report("gemm/hopper")))
    assert any("no operation asks for" in p for p in problems(program("rmsnorm/hopper"), report("gemm/hopper")))


@needs_tools
@pytest.mark.parametrize(("counts", "said"), [({"STL": 2}, "local memory"), ({"MEMBAR.GPU": 1}, "device-wide"), ({"HGMMA": 4, "WARPGROUP.DEPBAR": 4}, "serialised")])
def test_what_no_schedule_asks_for_in_a_loop_is_said(counts: dict[str, int], said: str) -> None:
    inner = next(i for i, loop in enumerate(report("gemm/hopper").loops) if loop.counts.get("HGMMA"))
    assert any(said in p for p in problems(program("gemm/hopper"), changed(report("gemm/hopper"), inner, counts)))


def test_a_convergence_barrier_that_is_used_twice_makes_no_loop() -> None:
    code = [
        ("BSSY", None, "B0, `(.L_x_0)"), ("BRA", "P0", "`(.L_x_1)"), ("STS", None, ""), ("BSYNC", None, "B0"),  # .L_x_1
        ("MEMBAR.ALL.GPU", None, ""), ("BSSY", None, "B0, `(.L_x_2)"), ("BRA", "P0", "`(.L_x_3)"), ("STS", None, ""), ("BSYNC", None, "B0"),  # .L_x_0 .. .L_x_3
        ("EXIT", None, ""),
    ]  # fmt: skip
    assert not natural_loops(split_blocks(code, {".L_x_0": 4, ".L_x_1": 3, ".L_x_2": 9, ".L_x_3": 8}))


@needs_tools
def test_a_meeting_that_is_not_in_the_machine_code_is_missed_and_one_that_nobody_asked_for_is_said() -> None:
    asked_for = {a.line: a.counts["BAR"] for a in asked(program("gemm/hopper")) if a.line and a.counts["BAR"]}
    assert asked_for, "the epilogue of a GEMM meets before and behind its stores"
    without = replace(report("gemm/hopper"), counts={**report("gemm/hopper").counts, "BAR": 0})
    for i in range(len(without.loops)):
        without = changed(without, i, {"BAR": 0})
    assert any("meets" in p and "BAR at most" in p for p in problems(program("gemm/hopper"), without))
    assert any("no threads meet in a loop" in p for p in problems(program("silu_mul_quant/hopper_rows"), report("gemm/hopper")))
