"""The benchmark's own tables, on a machine without torch or a GPU."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import cake_kernels
from bench.build import build_all
from bench.candidates import CANDIDATES
from bench.performance import winners
from bench.report import lines
from cake_backend.manifest import Manifest
from cake_backend.toolchain import nvrtc_version
from cake_ir.frontend import parse, specialise

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {(s.family, s.name): s.text for s in cake_kernels.schedules()}


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda c: c.name)
def test_a_candidate_is_a_schedule_of_the_corpus_that_takes_its_parameters_and_a_benchmark_shape(candidate) -> None:
    made = specialise(parse(TEXTS[candidate.family, candidate.schedule]).schedules[0], dict(candidate.params), candidate.target)
    assert made.program is not None, made.faults
    shapes = cake_kernels.tasks()[candidate.family].specialised(made.program.tunables)
    assert any(s.kind == "bench" and candidate.takes(s.name) for s in shapes)


def test_names_are_unique_and_every_family_has_a_headline() -> None:
    assert len({c.name for c in CANDIDATES}) == len(CANDIDATES)
    assert {c.family for c in CANDIDATES if c.main} == set(cake_kernels.families())


def test_what_is_built_here_can_be_loaded_there(tmp_path: Path) -> None:
    assert build_all(tmp_path, ["kmeans_assign"]) == 0
    folders = sorted(p.parent for p in tmp_path.glob("*/build.json"))
    assert {f.name for f in folders} == {c.name for c in CANDIDATES if c.family == "kmeans_assign"}
    for folder in folders:
        record = json.loads((folder / "build.json").read_text())
        manifest = Manifest.loads((folder / "manifest.json").read_text())
        assert (folder / "kernel.cubin").read_bytes()[:4] == b"\x7fELF" and record["compile"]["ok"]
        task = cake_kernels.tasks()[record["family"]]
        assert set(manifest.tensors) <= set(task.tensors) and set(manifest.scalars) <= set(task.scalars)


def test_the_path_that_runs_on_a_gpu_machine_imports_neither_pydantic_nor_the_server() -> None:
    code = (
        "import sys, types\n"
        "sys.modules['pydantic'] = sys.modules['mcp'] = None\n"
        "import bench.build, bench.evaluate, bench.report, cake_backend.judge.evaluation, cake_backend.judge.worker, cake_kernels\n"
        "cake_kernels.tasks()\n"
        "print(any(m.split('.')[0] == 'cake_mcp' for m in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "False", done.stderr


def test_torch_is_imported_in_bench_alone() -> None:
    for package in ("cake_ir", "cake_verify", "cake_backend", "cake_kernels", "cake_mcp"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not any(n.split(".")[0] == "torch" for n in names), path


def test_a_report_has_a_row_for_every_contender() -> None:
    mode = {"median_s": 1e-3, "min_s": 9e-4, "max_s": 2e-3, "tflops": 1.0, "gbytes_per_s": 2.0, "floor_over_time": 0.5,
            "speedup_over": {"peer": {"median": 1.25, "ci95": [1.2, 1.3], "rounds": 25}}}  # fmt: skip
    record = {
        "family": "gemm", "device": {"name": "X"}, "date": "d", "command": "c",
        "results": [{"shape": "s", "contenders": [{"name": "a", "error": None, "graph": mode, "cold": mode}, {"name": "b", "error": "wrong"}]}],
    }  # fmt: skip
    text = "\n".join(lines(record))
    assert "| s | a | 1000.0 | 1000.0 | 1 | 2 | 0.500 | peer 1.250 |" in text and "| s | b | wrong |" in text


@pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable", reason="needs NVRTC")
def test_what_won_a_shape_can_be_built_alone(tmp_path: Path) -> None:
    names = {c.name for c in CANDIDATES}
    assert len(set(winners()) & names) > 30
    one = next(c.name for c in CANDIDATES if c.family == "silu_mul_quant" and c.name in set(winners()))
    assert build_all(tmp_path, [], only=frozenset({one})) == 0
    assert [f.name for f in tmp_path.iterdir()] == [one] and (tmp_path / one / "kernel.cubin").stat().st_size
