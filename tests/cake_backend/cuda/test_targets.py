"""Schedules without tensor memory or wgmma are lowered for every target, with what each has: TMA and mma.sync on consumer Blackwell."""

from pathlib import Path

import pytest
from test_against_simulator import CORPUS, compare

from cake_backend.cuda.lower import lower
from cake_backend.toolchain import compile_cuda, nvrtc_version
from cake_ir import parse, specialise

BLACKWELL = ("sm_100a", "sm_103a", "sm_120a", "sm_121a")
FILES = sorted(p.stem for p in CORPUS.glob("*.py"))
QUICK = {("gemm_tma_mma_sync", "sm_120a"), ("softmax_two_pass", "sm_100a"), ("quantise_rows", "sm_121a")}


def cases() -> list[object]:
    """Every schedule of the corpus for every target that it names and that has a lowering for it."""
    out: list[object] = []
    for file in FILES:
        text = (CORPUS / f"{file}.py").read_text("utf-8")
        template = parse(text, file).schedule()
        assert template is not None
        if "lm.tmem(" in text or 'kind="clc"' in text or "LM.e2m1" in text:
            continue  # not lowered in this build
        for target in template.targets:
            if target in BLACKWELL:
                out.append(pytest.param(file, target, marks=[] if (file, target) in QUICK else [pytest.mark.slow]))
    return out


@pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable", reason="no NVRTC on this machine")
@pytest.mark.parametrize(("file", "target"), cases())
def test_a_schedule_compiles_for_blackwell(file: str, target: str) -> None:
    text = (CORPUS / f"{file}.py").read_text("utf-8")
    program = specialise(parse(text, file).schedule(), {}, target).program
    assert program is not None
    done = lower(program, source=text)
    build = compile_cuda(done.text, target, cache=False)
    assert build.ok, build.log
    assert build.resources.spill_stores + build.resources.spill_loads == 0
    assert "wgmma" not in done.text and f"for {target}" in done.text


def test_the_copy_engine_feeds_warp_level_multiplication(tmp_path: Path) -> None:
    compare(tmp_path, "gemm_tma_mma_sync", {"M": 144, "N": 136, "K": 144}, targets=("sm_120a",))
