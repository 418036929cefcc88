"""HW061: which fields of a wgmma descriptor matter when, on K-major operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory

CONTRACT = "HW061"
ASKS = "A (64 x 16, f16, K-major) with other strides, start addresses and base offsets than the usual ones"
CASES = ("128B", "no swizzle", "128B, start inside the atom")

# The host lays A out byte by byte; B is the identity's first 8 columns, swizzled at a whole atom, so D is the first 8 columns of A.
SOURCE = r"""
KERNEL product(const u32* image, const u32* ident, float* out, int start, int lbo, int sbo, int mode, int base_offset) {
  const u32 base = pool(), b = base + 32768u, t = threadIdx.x;
  for (u32 i = t; i < 8192u; i += 128u) st(base + i * 4u, image[i]);
  for (u32 i = t; i < 256u; i += 128u) st(b + i * 4u, ident[i]);
  fence_async(); __syncthreads();
  float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  wgmma_n8(d, descriptor(base + (u32)start, (u32)lbo, (u32)sbo, (u32)mode, (u32)base_offset), descriptor(b, 1u, 64u, 1u));
  const u32 row = (t >> 5) * 16u + ((t & 31u) >> 2), column = (t & 3u) * 2u;
  out[row * 8u + column] = d[0]; out[row * 8u + column + 1u] = d[1];
  out[(row + 8u) * 8u + column] = d[2]; out[(row + 8u) * 8u + column + 1u] = d[3];
}
"""
A = np.arange(64 * 16).reshape(64, 16) % 97


def image(place: Any) -> Any:
    """32 KiB with element (row, column) of A at byte `place(row, column)`; the rest is far from any value of A."""
    out = np.full(16384, 1000, np.float16)
    for r in range(64):
        for c in range(16):
            out[place(r, c) // 2] = A[r, c]
    return out


def swizzled(start: int, by_address: bool) -> Any:
    """Rows of 128 B from `start`, chunks exchanged by the bits of the address, or by the row within the tile."""

    def place(r: int, c: int) -> int:
        at = start + r * 128
        phase = (at >> 7) & 7 if by_address else r & 7
        return at + (((c * 2 // 16) ^ phase) * 16) + c * 2 % 16

    return place


def answer(bench: Bench, case: str) -> dict[str, Any]:
    ident = np.zeros(512, np.float16)
    for n in range(8):
        ident[n * 64 + (((n * 2 // 16) ^ n) * 16 + n * 2 % 16) // 2] = 1.0
    b, out = Memory(ident.view(np.uint32)), Memory(np.zeros(512, np.float32))

    def right(place: Any, start: int, lbo: int, sbo: int, mode: int, base_offset: int = 0) -> bool:
        out.upload(np.zeros(512, np.float32))
        bench.run("product", 1, 128, (Memory(image(place).view(np.uint32)), b, out, start, lbo, sbo, mode, base_offset), smem=40960)
        return bool(np.array_equal(out.read().reshape(64, 8), A[:, :8]))

    if case == "128B":
        plain = swizzled(0, True)
        return {f"lbo {n}": right(plain, 0, n, 64, 1) for n in (0, 1, 2, 64, 0x3FFF)} | {"sbo 63": right(plain, 0, 1, 63, 1)}
    if case == "no swizzle":
        # chunks of 8 x 8 elements, 128 B each: `near` bytes from one chunk of K to the next, `far` from 8 rows to the next
        def chunks(near: int, far: int) -> Any:
            return lambda r, c: r // 8 * far + c // 8 * near + r % 8 * 16 + c % 8 * 2

        return {
            "lbo along K, sbo along rows (K chunks adjacent)": right(chunks(128, 256), 0, 8, 16, 0),
            "lbo along K, sbo along rows (rows adjacent)": right(chunks(1024, 128), 0, 64, 8, 0),
            "lbo along rows, sbo along K (rows adjacent)": right(chunks(1024, 128), 0, 8, 64, 0),
        }
    found: dict[str, Any] = {}
    for rows in range(8):
        for by_address in (True, False):
            place = swizzled(rows * 128, by_address)
            name = f"{rows} rows in, chunks by {'address' if by_address else 'row of the tile'}"
            found[name] = [o for o in range(8) if right(place, rows * 128, 1, 64, 1, o)]
    return {"base offsets that give the right product": found}
