"""A CUDA driver whose device is this process's own memory: enough of the API for the judge's worker to run for real without a GPU.

A "cubin" is Python source. Each entry is a function `name(grid, block, *arguments)`; `PARAMS[name]` gives one `struct` letter a
parameter ("Q" for addresses). Memory is real memory, streams are synchronous, captured work runs at the graph's launch, and time is
counted, not measured: `KERNEL_SECONDS` a launch unless the module says otherwise.
"""

from __future__ import annotations

import ctypes
import enum
import struct
from collections.abc import Callable
from typing import Any

KERNEL_SECONDS = 5e-3
FLUSH_WORDS = 1 << 24  # as large a fill only empties a cache, which host memory has no need of


class CUresult(enum.IntEnum):
    """Outcomes that the double gives."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_LAUNCH_FAILED = 719


class _Names:
    """Stands for an enumeration: every name of it is a value of its own."""

    def __getattr__(self, name: str) -> str:
        return name


CUdevice_attribute = _Names()
CUfunction_attribute = _Names()
CUlimit = _Names()
CUlaunchAttributeID = _Names()
CUstreamCaptureMode = _Names()


class _Record:
    """A structure: fields appear when they are set, nested ones when they are read."""

    def __getattr__(self, name: str) -> Any:
        made = _Record()
        object.__setattr__(self, name, made)
        return made


class CUlaunchConfig(_Record):
    """Launch configuration."""


class CUlaunchAttribute(_Record):
    """Launch attribute."""


class CUuuid:
    """A device's identity."""

    bytes = b"host-memory-gpu!"


ATTRIBUTES = {
    "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": 4, "CU_DEVICE_ATTRIBUTE_CLOCK_RATE": 1_000_000, "CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE": 1_000_000,
    "CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH": 64, "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE": 1 << 16,
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": 9, "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": 0,
    "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448, "CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
}  # fmt: skip

_blocks: dict[int, Any] = {}
_events: dict[int, float] = {}
_capture: list[Callable[[], None]] | None = None
_clock = 0.0
_failed = CUresult.CUDA_SUCCESS
OK = (CUresult.CUDA_SUCCESS,)


def _enqueue(work: Callable[[], None]) -> tuple[CUresult]:
    if _capture is not None:
        _capture.append(work)
    else:
        work()
    return OK


def _spend(seconds: float) -> None:
    global _clock
    _clock += seconds


def _plain(*_: Any) -> tuple[Any, ...]:
    return OK


cuInit = cuCtxSetCurrent = cuFuncSetAttribute = cuCtxResetPersistingL2Cache = cuCtxSetLimit = cuMemHostRegister = _plain


def cuDeviceGetCount() -> tuple[Any, ...]:
    return *OK, 1


def cuDeviceGet(ordinal: int) -> tuple[Any, ...]:
    return *OK, ordinal


def cuDeviceGetName(size: int, device: int) -> tuple[Any, ...]:
    return *OK, b"host memory\0"


def cuDeviceGetUuid(device: int) -> tuple[Any, ...]:
    return *OK, CUuuid()


def cuDeviceTotalMem(device: int) -> tuple[Any, ...]:
    return *OK, 1 << 30


def cuDriverGetVersion() -> tuple[Any, ...]:
    return *OK, 13000


def cuDeviceGetAttribute(name: str, device: int) -> tuple[Any, ...]:
    return *OK, ATTRIBUTES[name]


def cuDevicePrimaryCtxRetain(device: int) -> tuple[Any, ...]:
    return *OK, 1


def cuCtxSynchronize() -> tuple[Any, ...]:
    return (_failed,)


def cuStreamCreate(flags: int) -> tuple[Any, ...]:
    return *OK, 7


def cuStreamSynchronize(stream: int) -> tuple[Any, ...]:
    return (_failed,)


# ------------------------------------------------------------ memory


def cuMemGetInfo() -> tuple[Any, ...]:
    return *OK, 1 << 28, 1 << 30


def cuMemAlloc(size: int) -> tuple[Any, ...]:
    block = ctypes.create_string_buffer(size + 256)
    address = -(-ctypes.addressof(block) // 256) * 256
    _blocks[address] = block
    return *OK, address


def cuMemFree(address: int) -> tuple[Any, ...]:
    del _blocks[address]
    return OK


def cuMemsetD32(address: int, value: int, count: int) -> tuple[Any, ...]:
    if count < FLUSH_WORDS:
        ctypes.memmove(address, struct.pack("<I", value) * count, 4 * count)
    return OK


def cuMemsetD32Async(address: int, value: int, count: int, stream: Any) -> tuple[Any, ...]:
    return _enqueue(lambda: (cuMemsetD32(address, value, count), _spend(4e-12 * count))[-1])


def cuMemsetD8Async(address: int, value: int, count: int, stream: Any) -> tuple[Any, ...]:
    return _enqueue(lambda: (ctypes.memset(address, value, count), _spend(1e-12 * count))[-1])


def cuMemcpyHtoD(device: int, host: int, size: int) -> tuple[Any, ...]:
    ctypes.memmove(device, host, size)
    return OK


cuMemcpyDtoH = cuMemcpyHtoD


def cuMemcpyDtoDAsync(target: int, source: int, size: int, stream: Any) -> tuple[Any, ...]:
    return _enqueue(lambda: (ctypes.memmove(target, source, size), _spend(1e-12 * size))[-1])


def cuMemHostGetDevicePointer(host: int, flags: int) -> tuple[Any, ...]:
    return *OK, host


# ------------------------------------------------------------ kernels


def cuModuleLoadData(image: bytes) -> tuple[Any, ...]:
    module: dict[str, Any] = {}
    exec(compile(image, "<cubin>", "exec"), module)  # the tests' own text
    return *OK, module


def cuModuleGetFunction(module: dict[str, Any], name: bytes) -> tuple[Any, ...]:
    entry = name.decode()
    return *OK, (module[entry], module["PARAMS"][entry], module.get("SECONDS", KERNEL_SECONDS))


def cuFuncGetAttribute(attribute: str, function: Any) -> tuple[Any, ...]:
    return *OK, 32


def cuOccupancyMaxActiveBlocksPerMultiprocessor(function: Any, block: int, smem: int) -> tuple[Any, ...]:
    return *OK, 2


def cuLaunchKernelEx(config: Any, function: Any, pointers: int, extra: int) -> tuple[Any, ...]:
    run, letters, seconds = function
    places = (ctypes.c_void_p * len(letters)).from_address(pointers)
    values = [struct.unpack("<" + c, ctypes.string_at(places[i], struct.calcsize(c)))[0] for i, c in enumerate(letters)]
    grid, block = config.gridDimX, config.blockDimX

    def work() -> None:
        global _failed
        try:
            run(grid, block, *values)
        except ArithmeticError:  # how a test's kernel traps
            _failed = CUresult.CUDA_ERROR_LAUNCH_FAILED
        _spend(seconds)

    return _enqueue(work)


# ------------------------------------------------------------ time and graphs


def cuEventCreate(flags: int) -> tuple[Any, ...]:
    _events[len(_events)] = 0.0
    return *OK, len(_events) - 1


def cuEventSynchronize(event: int) -> tuple[Any, ...]:
    return (_failed,)


def cuEventRecord(event: int, stream: Any) -> tuple[Any, ...]:
    _events[event] = _clock
    return OK


def cuEventElapsedTime(start: int, stop: int) -> tuple[Any, ...]:
    return *OK, (_events[stop] - _events[start]) * 1e3


def cuStreamBeginCapture(stream: Any, mode: str) -> tuple[Any, ...]:
    global _capture
    _capture = []
    return OK


def cuStreamEndCapture(stream: Any) -> tuple[Any, ...]:
    global _capture
    done, _capture = _capture, None
    return *OK, done


def cuGraphInstantiate(graph: Any, flags: int) -> tuple[Any, ...]:
    return *OK, list(graph)


def cuGraphLaunch(graph: list[Callable[[], None]], stream: Any) -> tuple[Any, ...]:
    for work in graph:
        work()
    return OK
