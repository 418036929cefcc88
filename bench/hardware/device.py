"""What a question needs of the driver: memory as NumPy arrays, launches by name, and a wait that notices a kernel that does not end."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from cake_backend.judge.device.driver import Gpu, bindings, call
from cake_backend.judge.device.launcher import Module

Array = np.ndarray[Any, Any]
PATIENCE = 1.0
"""Seconds until a kernel that has not ended counts as hanging."""


class Hanging(RuntimeError):
    """The kernel has not ended; what it wrote to host memory can still be read."""


class Memory:
    """Device memory with the contents of an array."""

    def __init__(self, data: Array) -> None:
        self.data = np.ascontiguousarray(data)
        self.address = int(call("cuMemAlloc", max(16, self.data.nbytes)))
        self.upload(self.data)

    def upload(self, data: Array) -> None:
        call("cuMemcpyHtoD", self.address, int(np.ascontiguousarray(data).ctypes.data), data.nbytes)

    def read(self) -> Array:
        out = np.empty_like(self.data)
        call("cuMemcpyDtoH", int(out.ctypes.data), self.address, out.nbytes)
        return out


class HostWords:
    """Words in host memory that a kernel writes directly: they survive a kernel that never ends."""

    def __init__(self, count: int) -> None:
        pointer = int(call("cuMemHostAlloc", 4 * count, 0x2))
        self.words = np.frombuffer((ctypes.c_uint32 * count).from_address(pointer), np.uint32)
        ctypes.memset(pointer, 0, 4 * count)
        self.address = int(call("cuMemHostGetDevicePointer", pointer, 0))

    def read(self) -> list[int]:
        return [int(w) for w in self.words]


class Bench:
    """An open device with one question's kernels loaded."""

    def __init__(self, cubin: bytes) -> None:
        self.gpu = Gpu.open(0)
        self.module = Module(self.gpu, cubin)
        self.sms = int(self.gpu.info["sms"])

    def launch(
        self, name: str, grid: int, block: int, arguments: Sequence[Any] = (), *, smem: int = 0, cluster: int = 1, early: bool = False, stream: Any = 0
    ) -> None:
        """Enqueue a kernel; arguments are memory, tensor maps (anything with `getPtr`) or integers, passed as 64 bits where large memory is meant."""
        d, kernel = bindings(), self.module.kernel(name)
        keep: list[Any] = []
        pointers = (ctypes.c_void_p * max(1, len(arguments)))()
        for i, a in enumerate(arguments):
            if hasattr(a, "getPtr"):
                pointers[i] = int(a.getPtr())
                continue
            value = ctypes.c_uint64(a.address) if isinstance(a, Memory | HostWords) else ctypes.c_int32(int(a))
            keep.append(value)
            pointers[i] = ctypes.addressof(value)
        if smem > 48 * 1024:
            call("cuFuncSetAttribute", kernel, d.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem)
        config = d.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
        config.sharedMemBytes, config.hStream = smem, stream
        attributes = []
        if cluster > 1:
            a = d.CUlaunchAttribute()
            a.id = d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            a.value.clusterDim.x, a.value.clusterDim.y, a.value.clusterDim.z = cluster, 1, 1
            attributes.append(a)
        if early:
            a = d.CUlaunchAttribute()
            a.id = d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            a.value.programmaticStreamSerializationAllowed = 1
            attributes.append(a)
        if attributes:
            config.attrs, config.numAttrs = attributes, len(attributes)
        call("cuLaunchKernelEx", config, kernel, ctypes.addressof(pointers), 0)

    def wait(self, seconds: float = PATIENCE) -> None:
        """Until everything is done; raises `Hanging` after the patience, `DriverError` for a fault."""
        d, event = bindings(), call("cuEventCreate", 0)
        call("cuEventRecord", event, 0)
        end = time.monotonic() + seconds
        while True:
            (status,) = d.cuEventQuery(event)
            if status != d.CUresult.CUDA_ERROR_NOT_READY:
                break
            if time.monotonic() > end:
                raise Hanging(f"not done after {seconds:g} s")
            time.sleep(1e-4)
        self.gpu.synchronize()

    def run(self, name: str, grid: int, block: int, arguments: Sequence[Any] = (), **options: Any) -> None:
        self.launch(name, grid, block, arguments, **options)
        self.wait()


def tensor_map(memory: Memory, dtype: str, dims: Sequence[int], strides: Sequence[int], box: Sequence[int], *, swizzle: str = "NONE", fill: str = "NONE",
               interleave: str = "NONE", steps: Sequence[int] | None = None, offset: int = 0) -> Any:  # fmt: skip
    """An encoded map by the driver's own names; sizes innermost first, strides in bytes without the innermost. Raises `DriverError`."""
    d = bindings()
    return call(
        "cuTensorMapEncodeTiled",
        getattr(d.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{dtype}"), len(dims), memory.address + offset,
        [d.cuuint64_t(n) for n in dims], [d.cuuint64_t(s) for s in strides], [d.cuuint32_t(b) for b in box],
        [d.cuuint32_t(s) for s in (steps or [1] * len(dims))],
        getattr(d.CUtensorMapInterleave, f"CU_TENSOR_MAP_INTERLEAVE_{interleave}"),
        getattr(d.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        d.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        getattr(d.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill}"),
    )  # fmt: skip
