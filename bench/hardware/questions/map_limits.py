"""HW043, HW046, HW048: what the encoder of tensor maps refuses on this device."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.hardware.device import Bench, Memory, tensor_map
from cake_backend.judge.device.driver import DriverError, bindings

CONTRACT = "HW043"
ASKS = "cuTensorMapEncodeTiled at the edges of its rules"
SOURCE = "KERNEL nothing() {}"
Plain = dict[str, Any]
PLAIN: Plain = {"dtype": "FLOAT16", "dims": (64, 64), "strides": (128,), "box": (64, 8)}
TRIALS: dict[str, Plain] = {
    "plain": {},
    "rank 1, no stride pointer": {"dims": (64,), "strides": (), "box": (64,)},
    "rank 1, a stride that is not read": {"dims": (64,), "strides": (16,), "box": (64,)},
    "base 8 B off": {"offset": 8},
    "base 16 B off": {"offset": 16},
    "stride of 136 B": {"strides": (136,)},
    "stride of 144 B": {"strides": (144,)},
    "stride 0": {"strides": (0,)},
    "stride below the row": {"strides": (16,)},
    "stride of 2^40 B": {"strides": (1 << 40,)},
    "stride of 2^40 - 16 B": {"strides": ((1 << 40) - 16,)},
    "extent 0": {"dims": (64, 0)},
    "extent 2^32": {"dims": (64, 1 << 32)},
    "extent 2^32 + 1": {"dims": (64, (1 << 32) + 1)},
    "box 0": {"box": (64, 0)},
    "box 256": {"box": (64, 256)},
    "box 257": {"box": (64, 257)},
    "box larger than the tensor": {"dims": (64, 4), "box": (64, 8)},
    "inner box of 24 B": {"box": (12, 8)},
    "inner box of 512 B": {"dims": (256, 64), "strides": (512,), "box": (256, 8)},
    "128B swizzle, inner 128 B": {"swizzle": "128B"},
    "128B swizzle, inner 144 B": {"dims": (72, 64), "strides": (144,), "box": (72, 8), "swizzle": "128B"},
    "64B swizzle, inner 128 B": {"swizzle": "64B"},
    "32B swizzle, inner 32 B": {"box": (16, 8), "swizzle": "32B"},
    "element step 0": {"steps": (1, 0)},
    "element step 8": {"steps": (1, 8)},
    "element step 9": {"steps": (1, 9)},
    "inner element step 2": {"steps": (2, 1)},
    "NaN fill, f16": {"fill": "NAN_REQUEST_ZERO_FMA"},
    "NaN fill, i32": {"dtype": "INT32", "dims": (32, 64), "box": (32, 8), "fill": "NAN_REQUEST_ZERO_FMA"},
    "NaN fill, u8": {"dtype": "UINT8", "dims": (128, 64), "box": (128, 8), "fill": "NAN_REQUEST_ZERO_FMA"},
    "box of 256 KiB": {"dims": (64, 4096), "box": (64, 256), "dtype": "FLOAT64", "strides": (512,)},
    "interleave 32B, rank 2": {"interleave": "32B", "swizzle": "32B"},
    "interleave 32B, rank 3, swizzle 32B": {"dims": (64, 64, 4), "strides": (128, 8192), "box": (16, 8, 1), "interleave": "32B", "swizzle": "32B"},
    "interleave 32B, rank 3, no swizzle": {"dims": (64, 64, 4), "strides": (128, 8192), "box": (16, 8, 1), "interleave": "32B"},
    "interleave 16B, rank 3": {"dims": (64, 64, 4), "strides": (128, 8192), "box": (8, 8, 1), "interleave": "16B"},
    "rank 5": {"dims": (64, 4, 4, 4, 4), "strides": (128, 512, 2048, 8192), "box": (64, 1, 1, 1, 1)},
    "128B_ATOM_32B swizzle": {"swizzle": "128B_ATOM_32B"},
    "16U4_ALIGN8B": {"dtype": "16U4_ALIGN8B", "dims": (128, 64), "strides": (64,), "box": (128, 8)},
    "16U4_ALIGN16B": {"dtype": "16U4_ALIGN16B", "dims": (128, 64), "strides": (64,), "box": (128, 8)},
    "16U6_ALIGN16B": {"dtype": "16U6_ALIGN16B", "dims": (128, 64), "strides": (96,), "box": (128, 8)},
}  # fmt: skip
CASES = ("all",)


def answer(bench: Bench, case: str) -> dict[str, Any]:
    del bench, case
    memory = Memory(np.zeros(1 << 20, np.uint8))
    out = {}
    for name, change in TRIALS.items():
        given = {**PLAIN, **change}
        if not hasattr(bindings().CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{given['dtype']}"):
            out[name] = "the bindings do not know it"
            continue
        try:
            tensor_map(memory, **given)
            out[name] = "accepted"
        except DriverError as error:
            out[name] = error.code
        except AttributeError as error:
            out[name] = f"the bindings do not know it: {error}"
    return out
