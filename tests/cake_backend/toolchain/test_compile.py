"""NVRTC in a child process: real compilations for real targets, with no GPU."""

from __future__ import annotations

import importlib.util
import json
import time
from pathlib import Path

import pytest

from cake_backend.toolchain import compile_cuda, nvrtc_version
from cake_backend.toolchain.cache import BuildCache, build_key

spec = importlib.util.spec_from_file_location("toolchain_kernels", Path(__file__).with_name("kernels.py"))
assert spec is not None and spec.loader is not None
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)

pytestmark = pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable", reason="no NVRTC wheel installed")


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_a_kernel_compiles_for_every_target_without_a_gpu(target: str) -> None:
    build = compile_cuda(kernels.SAXPY, target, cache=False)
    assert build.ok and build.cubin is not None and build.cubin[:4] == b"\x7fELF"
    assert 0 < build.entries["saxpy"].registers < 64
    assert build.resources.spill_stores == 0


def test_wgmma_without_interference_has_no_remark() -> None:
    build = compile_cuda(kernels.CLEAN_WGMMA, "sm_90a", cache=False)
    assert build.ok and build.remarks == () and not build.serialised


def test_a_serialised_wgmma_is_a_remark_with_a_line_of_the_generated_text() -> None:
    build = compile_cuda(kernels.SERIALISED_WGMMA, "sm_90a", cache=False)
    assert build.ok and build.serialised
    located = [r for r in build.remarks if r.generated_line is not None]
    loop = [n for n, text in enumerate(kernels.SERIALISED_WGMMA.splitlines(), 1) if "mma(d," in text or "d[0] *=" in text]
    assert located and all(min(loop) - 1 <= r.generated_line <= max(loop) + 1 for r in located)
    assert all("around line" not in r.text for r in build.remarks), "PTX lines mean nothing to a reader"
    assert len({(r.code, r.generated_line) for r in build.remarks}) == len(build.remarks), "each remark once"


@pytest.mark.parametrize("code", kernels.REPAIRED_WGMMA)
def test_a_fence_or_wait_that_the_assembler_puts_in_is_a_remark_with_its_line(code: str) -> None:
    text = kernels.REPAIRED_WGMMA[code]
    build = compile_cuda(text, "sm_90a", cache=False)
    assert build.ok and build.serialised and [r.code for r in build.remarks] == [code]
    near = next(n for n, line in enumerate(text.splitlines(), 1) if "mma(d, a, b, 1);" in line)
    assert build.remarks[0].generated_line in (near, near + 1) and build.remarks[0].severity == "warning"


def test_spills_are_counted_and_reported() -> None:
    build = compile_cuda(kernels.SPILLS, "sm_90a", maxreg=24, cache=False)
    assert build.resources.registers == 24 and build.resources.spill_stores > 0 and build.resources.stack > 0
    assert [r.code for r in build.remarks] == ["spill"]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [("384, 1", []), ("384", ["C7508"]), ("384, 6", ["bounds-ignored", "C7508"])],
)
def test_a_dropped_register_budget_is_a_warning(bounds: str, expected: list[str]) -> None:
    build = compile_cuda(kernels.BUDGETS.format(bounds=bounds), "sm_90a", cache=False)
    assert build.ok and [r.code for r in build.remarks] == expected and {r.severity for r in build.remarks} <= {"warning"}
    assert not build.serialised


@pytest.mark.parametrize(("target", "expected"), [("sm_90a", []), ("sm_100a", []), ("sm_120a", ["advisory"]), ("sm_121a", ["advisory"])])
def test_multicast_on_a_board_that_has_none_is_an_advisory_with_its_line(target: str, expected: list[str]) -> None:
    build = compile_cuda(kernels.MULTICAST, target, cache=False)
    assert build.ok and [r.code for r in build.remarks] == expected
    lines = [n for n, text in enumerate(kernels.MULTICAST.splitlines(), 1) if "asm volatile" in text]
    assert all(r.severity == "warning" and r.generated_line in (*lines, lines[0] + 1) for r in build.remarks)


def test_an_error_of_the_front_end_has_its_line() -> None:
    build = compile_cuda('extern "C" __global__ void k(int* p) {\n  *p = missing;\n}\n', "sm_90a", cache=False)
    assert not build.ok and build.status == "error" and build.cubin is None
    assert [(r.severity, r.generated_line) for r in build.remarks] == [("error", 2)]
    assert "missing" in build.remarks[0].text


def test_an_error_of_the_assembler_has_its_line() -> None:
    text = 'extern "C" __global__ void k() {\n  int a = 0;\n  asm volatile("wgmma.nonsense;");\n}\n'
    build = compile_cuda(text, "sm_90a", cache=False)
    assert not build.ok
    assert any(r.severity == "error" and r.generated_line == 3 for r in build.remarks), build.remarks


def test_a_target_without_the_instruction_is_refused() -> None:
    build = compile_cuda(kernels.CLEAN_WGMMA, "sm_80", cache=False)
    assert not build.ok and any(r.severity == "error" for r in build.remarks)


@pytest.mark.parametrize("target", ["", "sm_9", "compute_90", "sm_90a; rm -rf /", "sm_90a\n", "--help"])
def test_a_target_that_is_none_is_refused_before_anything_runs(target: str) -> None:
    with pytest.raises(ValueError, match="expected a target"):
        compile_cuda(kernels.SAXPY, target, cache=False)


def test_a_compile_that_does_not_end_is_stopped() -> None:
    # two nested constant loops over a template that doubles at each level keep the front end busy for far longer than the limit
    text = "template<int N, int M> struct F { static constexpr unsigned v = F<N-1, 2*M>::v + F<N-1, 2*M+1>::v; };\n"
    text += "template<int M> struct F<0, M> { static constexpr unsigned v = M; };\n"
    text += 'extern "C" __global__ void k(unsigned* p) { *p = F<22, 1>::v; }\n'
    start = time.monotonic()
    build = compile_cuda(text, "sm_90a", timeout=1.5, cache=False)
    assert build.status == "timeout" and not build.ok and time.monotonic() - start < 15


def test_a_second_compile_comes_from_the_cache(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    first = compile_cuda(kernels.SAXPY, "sm_90a", cache=cache)
    second = compile_cuda(kernels.SAXPY, "sm_90a", cache=cache)
    assert not first.cached and second.cached
    assert second.cubin == first.cubin and second.entries == first.entries and second.log == first.log


def test_a_damaged_cache_entry_is_compiled_again(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    first = compile_cuda(kernels.SAXPY, "sm_90a", cache=cache)
    cache.path(first.key).write_text('{"ok": true')
    again = compile_cuda(kernels.SAXPY, "sm_90a", cache=cache)
    assert not again.cached and again.cubin == first.cubin


def test_the_cache_key_depends_on_source_options_and_compiler() -> None:
    base = build_key("a", ("-x",), "nvrtc 1")
    others = [("b", ("-x",), "nvrtc 1"), ("a", ("-y",), "nvrtc 1"), ("a", ("-x",), "nvrtc 2"), ("-xa", (), "nvrtc 1")]
    assert base not in {build_key(*o) for o in others} and len({build_key(*o) for o in others}) == len(others)


def test_a_build_survives_json() -> None:
    build = compile_cuda(kernels.SERIALISED_WGMMA, "sm_90a", cache=False)
    again = type(build).from_json(json.loads(json.dumps(build.to_json(with_cubin=True))))
    assert again == build
