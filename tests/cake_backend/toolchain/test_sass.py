"""Reading machine code: real cubins where a disassembler is installed, listings otherwise."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cake_backend.toolchain import compile_cuda, nvrtc_version
from cake_backend.toolchain.flow import natural_loops, split_blocks
from cake_backend.toolchain.gate import sass_remarks
from cake_backend.toolchain.sass import find_disassembler, parse_sass, read_sass

spec = importlib.util.spec_from_file_location("toolchain_kernels", Path(__file__).with_name("kernels.py"))
assert spec is not None and spec.loader is not None
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)

needs_tools = pytest.mark.skipif(
    nvrtc_version() == "nvrtc unavailable" or find_disassembler() is None, reason="needs NVRTC and nvdisasm"
)

LISTING = """
\t.section\t.text.k,"ax",@progbits
.text.k:
\t//## File "k.cu", line 3
        /*0000*/                   MOV R7, 0x1 ;
.L_x_1:
\t//## File "k.cu", line 5
        /*0010*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR8], R4 ;
        /*0020*/              @!P0 BRA `(.L_x_2) ;
.L_x_3:
\t//## File "k.cu", line 6
        /*0030*/                   HGMMA.64x8x16.F32.BF16 R24, gdesc[UR4], R24 ;
        /*0040*/                   MEMBAR.ALL.GPU ;
        /*0050*/               @P1 BRA `(.L_x_1) ;
        /*0060*/                   EXIT ;
.L_x_2:
\t//## File "k.cu", line 9
        /*0070*/                   STG.E [R2.64], R131 ;
        /*0080*/                   MEMBAR.SC.SYS ;
        /*0090*/                   BPT.TRAP 0x1 ;
.L_x_4:
        /*00a0*/                   BRA `(.L_x_4) ;
"""


def test_a_loop_leaves_out_code_that_ends_in_a_trap() -> None:
    report = parse_sass(LISTING)["k"]
    hot = report.hot_loop()
    assert hot is not None
    assert hot.counts == {"HGMMA": 1, "MEMBAR.GPU": 1, "SYNCS": 1}
    assert (hot.lines, hot.instructions, report.largest_register) == ((5, 6), 5, 131)
    assert report.counts["MEMBAR.GPU"] == 2, "the barrier of the report counts for the kernel, not for the loop"


def test_a_device_wide_barrier_in_the_hot_loop_is_a_remark() -> None:
    found = sass_remarks(parse_sass(LISTING))
    assert [(r.code, r.generated_line) for r in found] == [("sass-membar", 5)]
    assert sass_remarks(parse_sass(LISTING.replace("MEMBAR.ALL.GPU", "MEMBAR.ALL.CTA"))) == ()


def test_nested_loops_have_depths() -> None:
    code = [("A", None, ""), ("B", None, ""), ("BRA", "P0", "`(.L_x_1)"), ("BRA", "P1", "`(.L_x_0)"), ("EXIT", None, "")]
    loops = natural_loops(split_blocks(code, {".L_x_0": 0, ".L_x_1": 1}))
    assert sorted(len(body) for body in loops.values()) == [1, 3]


def test_a_divergent_region_stays_in_its_loop() -> None:
    code = [
        ("BSSY", None, "B0, `(.L_x_9)"),
        ("BRA", "P0", "`(.L_x_8)"),
        ("STS", None, ""),
        ("BSYNC", None, "B0"),  # .L_x_8
        ("BRA", "P1", "`(.L_x_0)"),  # .L_x_9
        ("EXIT", None, ""),
    ]
    loops = natural_loops(split_blocks(code, {".L_x_0": 0, ".L_x_8": 3, ".L_x_9": 4}))
    (body,) = loops.values()
    assert len(body) == 4


def test_a_convergence_barrier_that_is_used_twice_cuts_no_loop() -> None:
    code = [
        ("BSSY", None, "B1, `(.L_x_5)"),
        ("BRA", "P0", "`(.L_x_4)"),
        ("STS", None, ""),
        ("NOP", None, ""),
        ("BSYNC", None, "B1"),  # .L_x_4
        ("BSSY", None, "B1, `(.L_x_9)"),  # .L_x_5
        ("BRA", "P2", "`(.L_x_8)"),
        ("STS", None, ""),
        ("BSYNC", None, "B1"),  # .L_x_8
        ("BRA", "P1", "`(.L_x_5)"),  # .L_x_9
        ("EXIT", None, ""),
    ]
    loops = natural_loops(split_blocks(code, {".L_x_4": 4, ".L_x_5": 5, ".L_x_8": 8, ".L_x_9": 9}))
    assert {header: len(body) for header, body in loops.items()} == {3: 4}


@needs_tools
def test_the_hot_loop_of_a_compiled_kernel_is_found() -> None:
    build = compile_cuda(kernels.CLEAN_WGMMA, "sm_90a", cache=False)
    assert build.cubin is not None
    reports = read_sass(build.cubin)
    assert reports is not None
    hot = reports["clean"].hot_loop()
    assert hot is not None and hot.counts["HGMMA"] >= 2
    assert hot.counts["WARPGROUP.DEPBAR"] * 2 == hot.counts["HGMMA"], "one wait a group of two"
    assert sass_remarks(reports) == ()


@needs_tools
def test_serialisation_shows_in_the_machine_code() -> None:
    build = compile_cuda(kernels.SERIALISED_WGMMA, "sm_90a", cache=False)
    assert build.cubin is not None
    reports = read_sass(build.cubin)
    assert reports is not None
    found = sass_remarks(reports, expected_waits={"serialised": reports["serialised"].counts["HGMMA"] // 2})
    assert [r.code for r in found] == ["sass-serialised"]


@needs_tools
def test_local_memory_is_counted() -> None:
    build = compile_cuda(kernels.SPILLS, "sm_90a", maxreg=24, cache=False)
    assert build.cubin is not None
    reports = read_sass(build.cubin)
    assert reports is not None and reports["spills"].counts["LDL"] > 0
    assert [r.code for r in sass_remarks(reports)] == ["sass-local"]


@needs_tools
def test_bytes_that_are_no_cubin_give_none() -> None:
    assert read_sass(b"not a cubin") is None
