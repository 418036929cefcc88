"""Interprets concrete launches: loads the cubin, encodes tensor maps, builds parameter blocks and configurations, and enqueues."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cake_backend.judge.device.driver import Gpu, bindings, call

_CTYPES: dict[str, Any] = {
    "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
}
_MAP_TYPES = {
    "bf16": "BFLOAT16", "f16": "FLOAT16", "f32": "FLOAT32", "tf32": "TFLOAT32", "f64": "FLOAT64", "i32": "INT32", "u32": "UINT32",
    "i64": "INT64", "u64": "UINT64", "u8": "UINT8", "i8": "UINT8", "e4m3": "UINT8", "e5m2": "UINT8", "ue8m0": "UINT8", "bool": "UINT8",
}  # fmt: skip
STATIC_SMEM_LIMIT = 48 * 1024
_NO_STRIDE = 16
"""A vector has no stride, but the encoder refuses the null pointer that the bindings make of an empty list: one that it never reads."""
PORTABLE_CLUSTER = 8


class LaunchRefused(RuntimeError):
    """The device cannot run this configuration at all (no CTA fits a multiprocessor, no cluster fits the chip)."""


def encode_map(m: Mapping[str, Any], address: int) -> Any:
    """A `CUtensorMap` for a bound map (sizes innermost first, strides in bytes) over the tensor at `address`."""
    d = bindings()
    rank = len(m["dims"])
    swizzle = {"none": "NONE", "32b": "32B", "64b": "64B", "128b": "128B"}[m["swizzle"]]
    promotion = {0: "NONE", 64: "L2_64B", 128: "L2_128B", 256: "L2_256B"}[m["l2"]]
    fill = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}[m["fill"]]
    return call(
        "cuTensorMapEncodeTiled",
        getattr(d.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_MAP_TYPES[m['dtype']]}"),
        rank,
        address,
        [d.cuuint64_t(n) for n in m["dims"]],
        [d.cuuint64_t(s) for s in m["strides"] or [_NO_STRIDE]],
        [d.cuuint32_t(b) for b in m["box"]],
        [d.cuuint32_t(1)] * rank,
        d.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(d.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        getattr(d.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{promotion}"),
        getattr(d.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill}"),
    )


class Module:
    """A loaded cubin and its kernels."""

    def __init__(self, gpu: Gpu, cubin: bytes) -> None:
        self.gpu = gpu
        self.handle = call("cuModuleLoadData", cubin)
        self._kernels: dict[str, Any] = {}

    def kernel(self, name: str) -> Any:
        if name not in self._kernels:
            self._kernels[name] = call("cuModuleGetFunction", self.handle, name.encode())
        return self._kernels[name]

    def attributes(self, name: str) -> dict[str, int]:
        """Registers, local bytes and static shared bytes as the driver sees them."""
        d, f = bindings(), self.kernel(name)
        wanted = {"registers": "NUM_REGS", "local_bytes": "LOCAL_SIZE_BYTES", "static_smem": "SHARED_SIZE_BYTES"}
        return {
            key: int(call("cuFuncGetAttribute", getattr(d.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{value}"), f))
            for key, value in wanted.items()
        }


@dataclass(slots=True)
class Prepared:
    """One launch ready to be enqueued; `grid` is 0 where there is nothing to do. Everything the driver points into is kept alive here.

    `clears` are (address, bytes) set to zero in front of it.
    """

    entry: str
    grid: int
    kernel: Any
    config: Any
    block: int
    keep: list[Any]
    pointers: Any
    clears: tuple[tuple[int, int], ...] = ()

    def enqueue(self, stream: Any) -> None:
        """Put the launch on a stream."""
        for address, nbytes in self.clears:
            call("cuMemsetD8Async", address, 0, nbytes, stream)
        if self.grid == 0:
            return
        self.config.hStream = stream
        result = bindings().cuLaunchKernelEx(self.config, self.kernel, ctypes.addressof(self.pointers), 0)
        if int(result[0]) != 0:
            from cake_backend.judge.device.driver import DriverError

            raise DriverError("cuLaunchKernelEx", result[0].name)


def prepare(
    module: Module | Sequence[Module], bound: Mapping[str, Any], addresses: Mapping[str, int], *, hang: int = 0, counters: int = 0,
    hang_step: int = 0, counters_step: int = 0,
) -> list[Prepared]:  # fmt: skip
    """All launches of a bound manifest over concrete device addresses (tensors and workspaces by name).

    The steps are the bytes between the report regions of two launches of one plan.
    """
    modules = [module] if isinstance(module, Module) else module
    maps = [encode_map(m, addresses[m["tensor"]]) if m is not None else None for m in bound["maps"]]
    sizes = {name: spec["nbytes"] for name, spec in {**bound["tensors"], **bound["workspaces"]}.items()}
    out = []
    for i, launch in enumerate(bound["launches"]):
        made = _prepare(modules[launch.get("module", 0)], launch, maps, addresses, hang + i * hang_step, counters + i * counters_step)
        made.clears = tuple((addresses[name], sizes[name]) for name in launch.get("clears", ()) if sizes[name])
        out.append(made)
    return out


def _prepare(
    module: Module, launch: Mapping[str, Any], maps: list[Any], addresses: Mapping[str, int], hang: int, counters: int
) -> Prepared:
    d = bindings()
    kernel = module.kernel(launch["entry"])
    keep: list[Any] = [maps]
    if launch["tiles"] == 0:
        return Prepared(launch["entry"], 0, kernel, None, launch["block"], keep, None)
    pointers = (ctypes.c_void_p * max(1, len(launch["params"])))()
    for i, p in enumerate(launch["params"]):
        kind = p["kind"]
        if kind == "tmap":
            pointers[i] = int(maps[p["map"]].getPtr())
            continue
        if kind == "ptr":
            value = ctypes.c_uint64(addresses[p["tensor"]])
        elif kind in ("hang", "counters"):
            value = ctypes.c_uint64(hang if kind == "hang" else counters)
        else:
            value = _CTYPES[kind](p["value"])
        keep.append(value)
        pointers[i] = ctypes.addressof(value)
    smem, block = launch["smem"], launch["block"]
    attribute = d.CUfunction_attribute
    if smem > STATIC_SMEM_LIMIT:
        call("cuFuncSetAttribute", kernel, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem)
    cluster = math.prod(launch["cluster"])
    if cluster > PORTABLE_CLUSTER:
        call("cuFuncSetAttribute", kernel, attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
    config = d.CUlaunchConfig()
    config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
    config.gridDimX, config.gridDimY, config.gridDimZ = max(cluster, 1), 1, 1
    config.sharedMemBytes = smem
    attrs = []
    if cluster > 1:
        # launched along x alone: the kernel derives its place in the cluster from the rank
        a = d.CUlaunchAttribute()
        a.id = d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        a.value.clusterDim.x, a.value.clusterDim.y, a.value.clusterDim.z = cluster, 1, 1
        attrs.append(a)
    if launch["pdl"]:
        a = d.CUlaunchAttribute()
        a.id = d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        a.value.programmaticStreamSerializationAllowed = 1
        attrs.append(a)
    if attrs:
        config.attrs, config.numAttrs = attrs, len(attrs)
        keep.append(attrs)
    grid = launch["tiles"]
    if launch["persistent"]:
        grid = min(grid, resident_ctas(module.gpu, kernel, config, block, smem, cluster, launch["ctas_per_sm"]))
    config.gridDimX = grid
    return Prepared(launch["entry"], grid, kernel, config, block, keep, pointers)


def resident_ctas(
    gpu: Gpu, kernel: Any, config: Any, block: int, smem: int, cluster: int, ctas_per_sm: int
) -> int:
    """CTAs that run at the same time: what fits, at most `ctas_per_sm` each, in whole clusters."""
    if cluster > 1:
        fits = int(call("cuOccupancyMaxActiveClusters", kernel, config)) * cluster
        most = ctas_per_sm * gpu.info["sms"] // cluster * cluster
        fits = min(fits, most)
    else:
        each = int(call("cuOccupancyMaxActiveBlocksPerMultiprocessor", kernel, block, smem))
        fits = min(each, ctas_per_sm) * gpu.info["sms"]
    if fits <= 0:
        raise LaunchRefused(f"no CTA of {block} threads and {smem} bytes of shared memory fits (cluster of {cluster})")
    return fits
