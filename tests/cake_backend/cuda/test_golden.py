"""The text that lowering prints, kept in `golden/`; `CAKE_UPDATE_GOLDEN=1` writes it anew."""

import os

import pytest
from corpus import CASES, GOLDEN, Case, lowered

from cake_backend.manifest import Manifest
from cake_backend.toolchain import compile_cuda, nvrtc_version


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_text_is_the_golden_one(case: Case) -> None:
    text = lowered(case).text
    path = GOLDEN / f"{case.name}.cu"
    if os.environ.get("CAKE_UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_every_golden_text_belongs_to_a_case() -> None:
    assert {p.stem for p in GOLDEN.glob("*.cu")} == {c.name for c in CASES}


@pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable", reason="no NVRTC on this machine")
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_golden_text_compiles_without_serialisation_and_spills(case: Case) -> None:
    text = (GOLDEN / f"{case.name}.cu").read_text("utf-8")
    build = compile_cuda(text, lowered(case).manifest.target, cache=False)
    assert build.ok, build.log
    assert not build.serialised
    assert [r for r in build.remarks if r.code.startswith(("C75", "C76"))] == []
    assert build.resources.spill_stores + build.resources.spill_loads <= case.spill
    assert build.cubin


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_manifest_reads_back_as_it_was_written(case: Case) -> None:
    manifest = lowered(case).manifest
    assert Manifest.loads(manifest.dumps()) == manifest
