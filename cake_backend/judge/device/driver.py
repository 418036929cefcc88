"""The CUDA driver, with every return code checked, and what a device is."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


class DriverError(RuntimeError):
    """A driver call failed. `code` is the driver's name for the error, such as CUDA_ERROR_LAUNCH_FAILED."""

    def __init__(self, call: str, code: str) -> None:
        super().__init__(f"{call}: {code}")
        self.call = call
        self.code = code


class NoDriver(RuntimeError):
    """This machine has no CUDA driver, or a driver without a device."""


@lru_cache(maxsize=1)
def bindings() -> Any:
    """The module `cuda.bindings.driver` (compiled, without stubs)."""
    try:
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise NoDriver(f"cuda.bindings is not installed: {error}") from None


def call(name: str, *arguments: Any) -> Any:
    """Call a driver function and return what follows the status: nothing, one value, or a tuple."""
    d = bindings()
    result = getattr(d, name)(*arguments)
    if int(result[0]) != 0:
        raise DriverError(name, getattr(result[0], "name", str(result[0])))
    return None if len(result) == 1 else result[1] if len(result) == 2 else result[1:]


@dataclass(frozen=True, slots=True)
class Gpu:
    """An open device: its primary context is current in this thread."""

    ordinal: int
    handle: Any
    context: Any
    info: dict[str, Any]

    @staticmethod
    def open(ordinal: int = 0) -> Gpu:
        """Initialise the driver and make the device's primary context current; NoDriver where there is nothing to open."""
        count = device_count()
        if ordinal >= count:
            raise NoDriver(f"device {ordinal} was asked for, {count} found")
        handle = call("cuDeviceGet", ordinal)
        context = call("cuDevicePrimaryCtxRetain", handle)
        call("cuCtxSetCurrent", context)
        return Gpu(ordinal, handle, context, describe(handle, ordinal))

    def synchronize(self) -> None:
        """Wait for everything; raises DriverError for any fault of a kernel since the last wait."""
        call("cuCtxSynchronize")


def device_count() -> int:
    """How many devices the driver shows; NoDriver where there is no usable driver."""
    try:
        call("cuInit", 0)
        return int(call("cuDeviceGetCount"))
    except DriverError as error:
        raise NoDriver(str(error)) from None
    except RuntimeError as error:  # cuda.pathfinder's DynamicLibNotFoundError is a RuntimeError
        raise NoDriver(str(error)) from None


_ATTRIBUTES = {
    "sms": "MULTIPROCESSOR_COUNT",
    "clock_khz": "CLOCK_RATE",
    "memory_clock_khz": "MEMORY_CLOCK_RATE",
    "memory_bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
    "l2_bytes": "L2_CACHE_SIZE",
    "smem_per_block": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "registers_per_sm": "MAX_REGISTERS_PER_MULTIPROCESSOR",
}


def describe(handle: Any, ordinal: int) -> dict[str, Any]:
    """Name, capability (major, minor), UUID, memory, driver version, and the figures that floors and grids are computed from."""
    d = bindings()

    def attribute(name: str) -> int:
        return int(call("cuDeviceGetAttribute", getattr(d.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), handle))

    name = call("cuDeviceGetName", 256, handle)
    uuid = call("cuDeviceGetUuid", handle)
    return {
        "index": ordinal,
        "name": name.split(b"\0")[0].decode(errors="replace"),
        "uuid": bytes(uuid.bytes).hex(),
        "capability": [attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")],
        "memory_bytes": int(call("cuDeviceTotalMem", handle)),
        "driver": int(call("cuDriverGetVersion")),
        **{key: attribute(value) for key, value in _ATTRIBUTES.items()},
    }


class Event:
    """A CUDA event with timing."""

    __slots__ = ("handle",)

    def __init__(self) -> None:
        self.handle = call("cuEventCreate", 0)

    def record(self, stream: Any) -> None:
        call("cuEventRecord", self.handle, stream)

    def wait(self) -> None:
        call("cuEventSynchronize", self.handle)

    def seconds_since(self, start: Event) -> float:
        """Time between two recorded and completed events."""
        return float(call("cuEventElapsedTime", start.handle, self.handle)) * 1e-3
