"""The numbers behind `lm.amax_scale`: what a scale is made of, shared by everything that computes or emits one."""

from __future__ import annotations

import struct

from cake_ir.dtypes import DTYPES


def largest(dtype: str) -> float:
    """The largest finite number of a quantised type."""
    return DTYPES[dtype].max_finite


def least(dtype: str) -> int:
    """The f32 bits of the smallest absolute maximum that a scale is made of: `largest` times 2^-126, so that scales stay normal numbers."""
    return int(struct.unpack("<I", struct.pack("<f", largest(dtype) * 2.0**-126))[0])
