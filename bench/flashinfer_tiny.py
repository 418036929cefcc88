"""Launches FlashInfer's small-batch GEMM programs that `bench.flashinfer_programs` compiled; CAKE_FLASHINFER names their folder."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

Launch = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]


def launcher(axes: Mapping[str, int], end: str) -> tuple[Launch, str]:
    """(Call on X, W, Y; the program's identifier) for one shape; `end` is "" or "_PDL".

    Raises LookupError where the folder is not given or FlashInfer serves the shape with another library's kernel.
    """
    folder = os.environ.get("CAKE_FLASHINFER")
    if not folder:
        raise LookupError("CAKE_FLASHINFER names no folder")
    record = json.loads(Path(folder, "shapes.json").read_text())["shapes"].get("m{M}_n{N}_k{K}".format(**axes))
    if record is None:
        raise LookupError("its dispatch has no generated program for this shape")
    import tvm_ffi

    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)  # the bindings encode tensor maps themselves
    program = record["program"] + end
    run = tvm_ffi.load_module(str(Path(folder, f"{program}.so").resolve()))["run"]
    values: dict[str, Any] = {"M": axes["N"], "N": axes["M"], "K": axes["K"], **dict(zip(("grid_x", "grid_y", "grid_z"), record["grid"], strict=True))}
    order = record["args"]

    def call(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> None:
        given = {**values, "W": w, "X": x, "out": y, "bias": y}  # a program without bias reads none
        with tvm_ffi.use_torch_stream():
            run(*[given[name] for name in order])

    return call, program
