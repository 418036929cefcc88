"""Cake's compiled candidates on torch tensors: the judge's own launcher, in the process of the benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from cake_backend.binding import TensorLayout, bind
from cake_backend.judge.device.driver import Gpu
from cake_backend.judge.device.launcher import Module, Prepared, prepare
from cake_backend.judge.hangs import buffer_bytes
from cake_backend.manifest import Manifest

TORCH_TYPES = {
    torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8",
    torch.float8_e4m3fn: "e4m3",
}  # fmt: skip


def layout(t: torch.Tensor) -> TensorLayout:
    return TensorLayout(tuple(t.shape), tuple(t.stride()), TORCH_TYPES[t.dtype])


class BuiltCandidate:
    """One folder that `bench.build` made."""

    def __init__(self, folder: Path, gpu: Gpu) -> None:
        self.record: dict[str, Any] = json.loads((folder / "build.json").read_text())
        self.manifest = Manifest.loads((folder / "manifest.json").read_text())
        files = sorted(folder.glob("kernel-*.cubin"), key=lambda f: int(f.stem.partition("-")[2]))
        self.modules = [Module(gpu, f.read_bytes()) for f in (folder / "kernel.cubin", *files)]

    def launches(self, tensors: Mapping[str, torch.Tensor], scalars: Mapping[str, Any]) -> list[Prepared]:
        """Prepared launches over these tensors; each holds all memory that it points into, whatever becomes of this object.

        torch gives freed blocks back to the driver whenever a graph capture begins, so a workspace that nobody holds is soon unmapped.
        """
        bound = bind(self.manifest, {n: layout(t) for n, t in tensors.items()}, scalars)
        addresses = {n: t.data_ptr() for n, t in tensors.items()}
        scratch = {n: torch.empty(max(1, spec["nbytes"]), dtype=torch.uint8, device="cuda") for n, spec in bound["workspaces"].items()}
        addresses |= {n: t.data_ptr() for n, t in scratch.items()}
        prepared = prepare(self.modules, bound, addresses)
        nbytes = max(64, buffer_bytes([(p.grid, p.block) for p in prepared]))
        hang = torch.zeros(nbytes, dtype=torch.uint8, device="cuda")  # device memory: a record would be lost, but never misplaced
        ready = prepare(self.modules, bound, addresses, hang=hang.data_ptr())
        for launch in ready:
            launch.keep += [hang, scratch, dict(tensors)]
        return ready


def enqueue_all(prepared: Sequence[Prepared]) -> None:
    """Put launches on torch's current stream, which is the capturing one inside a graph."""
    stream = torch.cuda.current_stream().cuda_stream
    for p in prepared:
        p.enqueue(stream)


def find_built(folder: Path, family: str) -> list[Path]:
    """Folders of candidates of a family."""
    return sorted(p.parent for p in folder.glob("*/build.json") if json.loads(p.read_text())["family"] == family)
