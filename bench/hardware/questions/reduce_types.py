"""HW042: which element types of a tensor map does each reduction of the copy engine take?"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory, tensor_map

CONTRACT = "HW042"
ASKS = "cp.reduce.async.bulk.tensor of every operation on a map of every type: right, something else, or a fault"
OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
TYPES: dict[str, Any] = {
    "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "INT32": np.int32, "UINT64": np.uint64, "INT64": np.int64, "FLOAT16": np.float16,
    "FLOAT32": np.float32, "FLOAT64": np.float64, "BFLOAT16": np.uint16, "FLOAT32_FTZ": np.float32, "TFLOAT32": np.float32,
}  # fmt: skip
CASES = tuple(f"{op} {kind}" for op in OPERATIONS for kind in TYPES)
ROWS, INNER = 4, 64  # a box of 4 rows of 64 bytes

SOURCE = "\n".join(
    f"""
KERNEL reduce_{op}(const __grid_constant__ Map map, const u32* in) {{
  const u32 base = pool();
  for (u32 i = threadIdx.x; i < {ROWS * INNER // 4}u; i += 32u) st(base + i * 4u, in[i]);
  fence_async(); __syncwarp();
  if (threadIdx.x == 0) {{
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.bulk_group [%0, {{%1, %1}}], [%2];" :: "l"(&map), "r"(0), "r"(base) : "memory");
    bulk_commit(); bulk_wait();
  }}
}}"""
    for op in OPERATIONS
)


def bf16(x: Any) -> Any:
    return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def expected(op: str, old: Any, new: Any) -> Any:
    """What the operation means on values; None where it has no meaning for floats."""
    floating = np.issubdtype(old.dtype, np.floating)
    if op in ("and", "or", "xor", "inc", "dec") and floating:
        return None
    if op == "inc":
        return np.where(old >= new, 0, old + 1).astype(old.dtype)
    if op == "dec":
        return np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype)
    return {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op](old, new)


def answer(bench: Bench, case: str) -> dict[str, Any]:
    op, kind = case.split()
    dtype = np.dtype(TYPES[kind])
    count = ROWS * INNER // dtype.itemsize
    rng = np.random.default_rng(1)
    old, new = rng.integers(0, 9, count), rng.integers(0, 9, count)
    if kind == "BFLOAT16":
        before, given, values = bf16(old), bf16(new), (old.astype(np.float32), new.astype(np.float32))
    else:
        before, given = old.astype(dtype), new.astype(dtype)
        values = (before, given)
    memory, source = Memory(before.view(np.uint8)), Memory(given.view(np.uint8))
    across = INNER // dtype.itemsize
    encoded = tensor_map(memory, kind, (across, ROWS), (INNER,), (across, ROWS))
    bench.run(f"reduce_{op}", 1, 32, (encoded, source), smem=4096)
    after = memory.read().view(dtype)
    want = expected(op, *values)
    if want is not None and np.array_equal(after, bf16(want) if kind == "BFLOAT16" else want):
        return {"result": "right"}
    if np.array_equal(after, before):
        return {"result": "unchanged"}
    return {"result": "other", "old": old[:4].tolist(), "given": new[:4].tolist(), "after": [str(x) for x in after[:4]]}
