"""Clocks, power and temperature of a device through NVML, where its library is installed."""

from __future__ import annotations

import ctypes
from typing import Any

_SM, _MEM = 1, 2  # nvmlClockType_t


class Telemetry:
    """Samples one device; every sample is an empty dictionary where NVML is missing or refuses."""

    def __init__(self, uuid: str) -> None:
        self._lib: Any = None
        self._device = ctypes.c_void_p()
        try:
            lib = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        text = f"GPU-{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:32]}".encode()
        if lib.nvmlInit_v2() == 0 and lib.nvmlDeviceGetHandleByUUID(text, ctypes.byref(self._device)) == 0:
            self._lib = lib

    def sample(self) -> dict[str, int]:
        """sm_mhz, memory_mhz, power_mw, temperature_c and throttle_reasons (NVML's bit mask), as far as they can be read."""
        if self._lib is None:
            return {}
        out: dict[str, int] = {}
        value = ctypes.c_uint()
        reads = {
            "sm_mhz": lambda: self._lib.nvmlDeviceGetClockInfo(self._device, _SM, ctypes.byref(value)),
            "memory_mhz": lambda: self._lib.nvmlDeviceGetClockInfo(self._device, _MEM, ctypes.byref(value)),
            "power_mw": lambda: self._lib.nvmlDeviceGetPowerUsage(self._device, ctypes.byref(value)),
            "temperature_c": lambda: self._lib.nvmlDeviceGetTemperature(self._device, 0, ctypes.byref(value)),
        }
        for name, read in reads.items():
            if read() == 0:
                out[name] = value.value
        reasons = ctypes.c_ulonglong()
        if self._lib.nvmlDeviceGetCurrentClocksThrottleReasons(self._device, ctypes.byref(reasons)) == 0:
            out["throttle_reasons"] = reasons.value
        return out
