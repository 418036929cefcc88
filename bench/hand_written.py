"""Hand-written CUDA kernels as contenders, from a folder named by CAKE_HAND_KERNELS (with `variants.py` and `bin/*.cubin`)."""

from __future__ import annotations

import os
import runpy
import struct
from pathlib import Path
from typing import Any

import torch

from cake_backend.judge.device.driver import DriverError, Gpu, call
from cake_backend.judge.device.launcher import Module, Prepared, prepare

HANG_BYTES = 256 * 16 * 64
PROFILE_BYTES = 132 * 4 * 8 * 4 * 2


def folder() -> Path | None:
    """The folder, or None where it is not given."""
    given = os.environ.get("CAKE_HAND_KERNELS")
    return Path(given) if given and Path(given).is_dir() else None


class HandKernel:
    """One variant: its macros and its loaded cubin."""

    def __init__(self, name: str, gpu: Gpu) -> None:
        place = folder()
        assert place is not None, "asked for without a folder"
        self.name, self.gpu = name, gpu
        self.macros: dict[str, int] = runpy.run_path(str(place / "variants.py"))["V"][name][1]
        self.module = Module(gpu, (place / "bin" / f"{name}.cubin").read_bytes())
        self.smem = self._shared_bytes()

    def _shared_bytes(self) -> int:
        try:
            address, size = call("cuModuleGetGlobal", self.module.handle, b"cfg_smem")
        except DriverError:
            return 0
        buffer = bytearray(int(size))
        import ctypes

        call("cuMemcpyDtoH", ctypes.addressof(ctypes.c_char.from_buffer(buffer)), int(address), int(size))
        return int(struct.unpack("i", buffer[:4])[0])

    def macro(self, name: str, default: int) -> int:
        return self.macros.get(name, default)

    def launches(self, maps: list[dict[str, Any]], params: list[dict[str, Any]], tensors: dict[str, torch.Tensor]) -> list[Prepared]:
        """A persistent launch of one CTA a multiprocessor over these maps and parameters."""
        cluster = self.macro("CL", 2)
        hang = torch.zeros(HANG_BYTES, dtype=torch.uint8, device="cuda")
        profile = torch.zeros(PROFILE_BYTES, dtype=torch.uint8, device="cuda")
        bound = {
            "maps": maps, "workspaces": {},
            "tensors": {n: {"nbytes": t.numel() * t.element_size()} for n, t in tensors.items()},
            "launches": [
                {
                    "entry": "kernel", "block": 128 * (self.macro("NC", 2) + 1), "cluster": [cluster, 1, 1], "smem": self.smem,
                    "ctas_per_sm": 1, "tiles": self.gpu.info["sms"] // cluster * cluster, "persistent": False, "pdl": False,
                    "params": params,
                }
            ],
        }  # fmt: skip
        ready = prepare(
            self.module, bound, {n: t.data_ptr() for n, t in tensors.items()}, hang=hang.data_ptr(), counters=profile.data_ptr()
        )
        for launch in ready:  # the memory lives as long as what points into it: torch unmaps freed blocks when a capture begins
            launch.keep += [hang, profile, dict(tensors)]
        return ready


def map2d(name: str, t: torch.Tensor, columns: int, rows: int) -> dict[str, Any]:
    """A 128-byte-swizzled map over a row-major bf16 matrix."""
    return {
        "tensor": name, "dtype": "bf16", "dims": [t.shape[1], t.shape[0]], "strides": [t.stride(0) * 2], "box": [columns, rows],
        "swizzle": "128b", "l2": 256, "fill": "zero",
    }  # fmt: skip


def gemm(kernel: HandKernel, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> list[Prepared]:
    """C = A B^T; raises ValueError for shapes that are no multiple of the tile."""
    consumers, blocks, bn, cluster = (kernel.macro(n, d) for n, d in (("NC", 2), ("MT", 1), ("BN", 256), ("CL", 2)))
    bm = 64 * consumers * blocks
    m, k = a.shape
    n = c.shape[1]
    if n % bn or m % (bm * cluster) or k % 64:
        raise ValueError(f"{m} x {n} x {k} is no multiple of the tile")
    maps = [map2d("A", a, 64, bm), map2d("B", b, 64, bn // cluster), map2d("C", c, 64, 64)]
    params = [{"kind": "tmap", "map": i} for i in range(3)]
    params += [{"kind": "ptr", "tensor": "C"}, *({"kind": "i32", "value": v} for v in (m, n, k)), {"kind": "hang"}, {"kind": "counters"}]
    return kernel.launches(maps, params, {"A": a, "B": b, "C": c})


def kmeans(kernel: HandKernel, x: torch.Tensor, mu: torch.Tensor, mu_sq: torch.Tensor, idx: torch.Tensor) -> list[Prepared]:
    """Nearest centroids of (B, N, D) points."""
    consumers, blocks, bn, cluster = (kernel.macro(n, d) for n, d in (("NC", 2), ("MT", 1), ("BN", 256), ("CL", 2)))
    batch, points, depth = x.shape
    count = mu.shape[1]
    maps = [map2d("X", x.view(batch * points, depth), 64, 64 * consumers * blocks), map2d("MU", mu.view(batch * count, depth), 64, bn // cluster)]
    params: list[dict[str, Any]] = [{"kind": "tmap", "map": 0}, {"kind": "tmap", "map": 1}]
    params += [{"kind": "ptr", "tensor": "MU_SQ"}, {"kind": "ptr", "tensor": "IDX"}]
    params += [*({"kind": "i32", "value": v} for v in (batch, points, count)), {"kind": "hang"}, {"kind": "counters"}]
    return kernel.launches(maps, params, {"X": x, "MU": mu, "MU_SQ": mu_sq, "IDX": idx})
