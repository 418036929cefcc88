"""Device memory with a guard band on both sides, so that a write outside a buffer is seen and a read outside gives NaN."""

from __future__ import annotations

import ctypes
from typing import Any

from cake_backend.judge.device.driver import call

GUARD = 64 * 1024
ALIGN = 1024


class Buffer:
    """`nbytes` of device memory between two guard bands; everything is filled with a 32-bit pattern at first."""

    __slots__ = ("address", "base", "nbytes", "pattern", "total")

    def __init__(self, nbytes: int, pattern: int) -> None:
        self.nbytes = nbytes
        self.pattern = pattern
        padded = -(-nbytes // ALIGN) * ALIGN
        self.total = padded + 2 * GUARD + ALIGN
        self.base = int(call("cuMemAlloc", self.total))
        self.address = -(-(self.base + GUARD) // ALIGN) * ALIGN
        call("cuMemsetD32", self.base, pattern, self.total // 4)

    def poison(self, stream: Any = 0) -> None:
        """Fill the data (not the bands) with the pattern; a last partial word is left, bands start behind it."""
        if self.nbytes >= 4:
            call("cuMemsetD32Async", self.address, self.pattern, self.nbytes // 4, stream)
        if tail := self.nbytes % 4:
            at = self.address + self.nbytes - tail
            for i in range(tail):
                call("cuMemsetD8Async", at + i, (self.pattern >> (8 * i)) & 0xFF, 1, stream)

    def upload(self, data: Any) -> None:
        """Copy a C-contiguous NumPy array (or anything with a writable or read-only buffer of `nbytes`) to the device."""
        view = memoryview(data).cast("B")
        if len(view) != self.nbytes:
            raise ValueError(f"{len(view)} bytes for a buffer of {self.nbytes}")
        if self.nbytes:
            call("cuMemcpyHtoD", self.address, _address(data), self.nbytes)

    def copy_from(self, other: Buffer, stream: Any = 0) -> None:
        """Device to device, same size."""
        if self.nbytes:
            call("cuMemcpyDtoDAsync", self.address, other.address, self.nbytes, stream)

    def download(self) -> bytearray:
        """The data."""
        return _read(self.address, self.nbytes)

    def broken_bands(self) -> dict[str, int]:
        """Bytes of each band that no longer hold the pattern, with the distance of the nearest from the data (empty: all intact)."""
        found: dict[str, int] = {}
        expected = self.pattern.to_bytes(4, "little")
        head = self.address - self.base
        for name, start, size in (
            ("before", self.base, head),
            ("behind", self.address + self.nbytes, self.total - head - self.nbytes),
        ):
            phase = (start - self.base) % 4
            want = (expected * (size // 4 + 2))[phase : phase + size]
            got = bytes(_read(start, size))
            if got != want:
                wrong = [i for i in range(size) if got[i] != want[i]]
                found[name] = len(wrong)
                found[f"{name}_distance"] = size - 1 - wrong[-1] if name == "before" else wrong[0]
        return found

    def free(self) -> None:
        """Give the memory back; errors are ignored, because a faulted context frees everything anyway."""
        from cake_backend.judge.device.driver import DriverError

        try:
            call("cuMemFree", self.base)
        except DriverError:
            return


def _address(data: Any) -> int:
    import numpy as np

    return int(np.frombuffer(data, np.uint8).ctypes.data) if not isinstance(data, np.ndarray) else int(data.ctypes.data)


def _read(address: int, size: int) -> bytearray:
    out = bytearray(size)
    if size:
        call("cuMemcpyDtoH", ctypes.addressof(ctypes.c_char.from_buffer(out)), address, size)
    return out


def poison_pattern(seed: int) -> int:
    """A 32-bit pattern that is NaN as one f32 and as two f16 or bf16 values, and differs from run to run."""
    low, high = seed & 0x3F, (seed >> 6) & 0x3F
    return ((0x7FC0 | high) << 16) | 0x7FC0 | low
