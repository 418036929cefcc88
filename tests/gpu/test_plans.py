"""Plans with workspaces on a real device: by the judge, and by the benchmarks' runner on torch's memory."""

from __future__ import annotations

import gc
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bench.build import write
from cake_backend.judge import evaluate
from cake_backend.judge.building import build_routine
from cake_backend.judge.check import Reference
from cake_backend.judge.devices import find_devices
from cake_backend.judge.source import read_source
from cake_backend.task import numpy_dtype

DEVICES = find_devices().devices
HOPPER = bool(DEVICES) and DEVICES[0]["capability"] == [9, 0]
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not HOPPER, reason="the texts are for capability 9.0")]


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


PLANS = _module(Path(__file__).parents[1] / "support" / "workspace_plans.py").PLANS


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_with_a_workspace_passes_and_is_timed(name: str) -> None:
    text, task = PLANS[name]
    record = evaluate(text, task=task, device="gpu", options={"heldout": 1})
    assert record["status"] in ("PASSED", "TIMING_UNTRUSTED"), record["summary"]


@pytest.mark.parametrize("name", PLANS)
def test_launches_keep_their_workspaces_when_torch_gives_free_blocks_back(name: str, tmp_path: Path) -> None:
    """A graph capture empties torch's cache first: a workspace that nobody held was unmapped then, and the next launch faulted."""
    torch = pytest.importorskip("torch")
    from bench.cake_runner import BuiltCandidate, enqueue_all
    from cake_backend.judge.device.driver import Gpu

    text, task = PLANS[name]
    source = read_source(text, {}, target=None, task=task)
    assert source.routine is not None
    write(tmp_path, build_routine(source.routine, text, timeout=60.0), {"params": {}})
    torch.zeros(1, device="cuda")
    shape = next(s for s in task.shapes if s.kind == "bench")
    inputs = task.distributions[0].make(np.random.default_rng(1), shape.axes)
    tensors: dict[str, Any] = {}
    for tensor, layout in task.layouts(shape.axes).items():
        kind = {"bf16": torch.bfloat16, "f32": torch.float32}[task.tensors[tensor].dtype]
        tensors[tensor] = torch.full(layout.shape, float("nan"), dtype=kind, device="cuda")
        if tensor in inputs:
            tensors[tensor].copy_(torch.from_numpy(inputs[tensor].astype(np.float32)))
    prepared = BuiltCandidate(tmp_path, Gpu.open(0)).launches(tensors, task.scalar_values(shape.axes))
    gc.collect()
    torch.cuda.empty_cache()
    enqueue_all(prepared)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        enqueue_all(prepared)
    graph.replay()
    torch.cuda.synchronize()
    (out,) = [n for n, t in task.tensors.items() if t.mode == "out"]
    wide = torch.int16 if task.tensors[out].dtype == "bf16" else torch.int32
    found = tensors[out].view(wide).cpu().numpy().view(numpy_dtype(task.tensors[out].dtype))
    verdict = Reference(task, shape.axes, inputs, None).compare({out: found}, task.distributions[0])[out]
    assert verdict.ok, verdict.reason
