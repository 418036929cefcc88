"""Block scales of `lm.mma` as the tensor core finds them: bytes of tensor memory, or words that each warp has of its rows.

Scales and elements are decoded exactly and multiplied in float64; the sum over the K of one instruction is rounded to float32 once, and
added to the accumulator in float32. The hardware aligns and truncates there, so the last bits differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cake_backend.simulate import floats
from cake_backend.simulate.elementwise import build, frag_type, grid
from cake_backend.simulate.faults import Abort, NotSimulated, label
from cake_backend.simulate.floats import Array
from cake_backend.simulate.machine import Site, Vals
from cake_backend.simulate.registers import Held
from cake_backend.simulate.state import Cta, Warp
from cake_backend.simulate.tmem import COLUMNS, LANES, memory
from cake_ir.ops.scales import ATOM, ATOM_ROWS, WORD, atoms, first_of
from cake_ir.program import Expr
from cake_ir.types import FragT, ScalesT, TmemT

AT_ONCE = 64
"""Rows of each side in one call of the matrix library: more would wake its threads, which costs more than it brings at these sizes."""

QUARTERS = 4
"""Groups of 32 lanes, each of which reads its own copy of the scales."""


def decoded(raw: Array, dtype: str) -> Array:
    """Bytes of scales as float64; the sign of an e4m3 is not part of it (ue4m3)."""
    return floats.decode(raw & np.uint8(0x7F) if dtype == "e4m3" else raw, dtype).astype(np.float64)


def multiplied(acc: Array | None, a: Array, b: Array, k: int, scale_a: Array, scale_b: Array, block: int) -> Array:
    """acc[M,N] + (a scale_a)[M,K] (b scale_b)[N,K]^T in float32, `k` elements of K at a time; scales are (rows, K / block)."""
    left, right = (x.astype(np.float64) * np.repeat(s, block, axis=1) for x, s in ((a, scale_a), (b, scale_b)))
    total = np.zeros((len(a), len(b)), np.float32) if acc is None else acc.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # scales reach 2^127
        for r in range(0, len(a), AT_ONCE):
            for c in range(0, len(b), AT_ONCE):
                part = total[r : r + AT_ONCE, c : c + AT_ONCE]
                for i in range(0, a.shape[1], k):
                    part += (left[r : r + AT_ONCE, i : i + k] @ right[c : c + AT_ONCE, i : i + k].T).astype(np.float32)
    return total


class RegionScales:
    """Scales of an operand in tensor memory: `rows` rows, `count` blocks of K."""

    def __init__(self, site: Site, name: str, rows: int, k: int) -> None:
        e = site.op.operands[name]
        assert isinstance(e, Expr) and isinstance(e.type, ScalesT) and isinstance(e.type.source, TmemT)
        self.site, self.type, self.source = site, e.type, e.type.source
        self.position = site.code.index[name]
        self.start = site.machine.program.tmems[self.source.tmem].col
        self.rows, self.count = rows, k // e.type.block

    def columns(self, vals: Vals) -> range:
        """The 32-bit columns of the region."""
        lo = self.start + int(vals[self.position][0]) // WORD
        return range(lo, lo + self.source.cols // WORD)

    def read(self, warp: Warp, vals: Vals, cta: Cta) -> Array:
        """By quarter of the lanes the scales that it reads: (4, rows, count)."""
        m, op, at, first = self.site.machine, self.site.op, self.columns(vals), int(vals[self.position][1])
        if at.start < 0 or at.stop > COLUMNS:
            raise Abort(m.located("X006", f"{label(op)} reaches columns {at.start}..{at.stop} of tensor memory", op, warp=warp))
        last = first + self.count - 1
        words = ATOM * atoms(self.rows)
        if first < 0 or words * (last // WORD + 1) > self.source.cols:
            raise Abort(m.located("X006", f"{label(op)} takes scales {first}..{last} of `{self.source.tmem}`, past the end of its words", op, warp=warp))
        lanes = np.ascontiguousarray(memory(cta)[:LANES, at.start : at.stop]).view(np.uint8)
        number, row = first + np.arange(self.count)[None, :], np.arange(self.rows)[:, None]
        col = words * (number // WORD) + ATOM * (row // ATOM_ROWS) + WORD * (row % ATOM_ROWS // 32) + number % WORD
        raw = np.stack([lanes[32 * q + row % 32, col] for q in range(QUARTERS)])
        if floats.is_float(self.type.dtype) and np.isnan(decoded(raw, self.type.dtype)).all():
            m.note(op, f"scales are read from `{self.source.tmem}` before anything was written there")
        return decoded(raw, self.type.dtype)

    def own(self, found: Array) -> Array:
        """The scales of rows that each lie in the lanes of their number: the copy of their own quarter, (rows, count)."""
        row = np.arange(self.rows)
        return found[row % ATOM_ROWS // 32, row]


def tensor_product(acc: Array | None, a: Array, b: Array, k: int, scale_a: Array, scale_b: Array, block: int) -> Array:
    """The product of one CTA, whose quarters of the lanes each read their own copy of the scales of B, (4, rows, count)."""
    if (scale_b == scale_b[:1]).all() or np.isnan(scale_b).any():
        return multiplied(acc, a, b, k, scale_a, scale_b[0] if not np.isnan(scale_b).any() else scale_b.max(axis=0), block)
    parts = []
    for q in range(QUARTERS):
        mine = slice(q * len(a) // QUARTERS, (q + 1) * len(a) // QUARTERS)
        parts.append(multiplied(None if acc is None else acc[mine], a[mine], b, k, scale_a[mine], scale_b[q], block))
    return np.concatenate(parts)


class RowScales:
    """Scales of an operand in registers: each warp has those of its own rows."""

    def __init__(self, site: Site, name: str, rows: list[Held], k: int) -> None:
        tree = site.code.trees[name]
        assert isinstance(tree.type, ScalesT) and isinstance(tree.type.source, FragT)
        t = frag_type(tree.args[0])
        for have, want in zip(grid(site, t), rows, strict=True):
            if not np.array_equal(have.rows, want.rows):
                raise NotSimulated("scales that lie on other threads than the rows of their operand", site.op.span)
        self.dtype, self.raw, self.block, self.count = tree.type.dtype, t.dtype, tree.type.block, k // tree.type.block
        self.value: Any = build(site, tree.args[0])
        self.first: Callable[[Any, Vals], Any] = build(site, first_of(tree))

    def read(self, warp: Warp, vals: Vals) -> Array:
        """(rows of the warp, count)."""
        x = self.value(warp, vals)
        if self.raw not in ("u8", "u32"):
            return np.abs(x.astype(np.float64))
        number = int(self.first(None, vals)) + np.arange(self.count)[None, :]
        return decoded((x.astype(np.uint64) >> (8 * number).astype(np.uint64) & np.uint64(255)).astype(np.uint8), self.dtype)


__all__ = ["RegionScales", "RowScales", "multiplied", "tensor_product"]
