"""Warp-level products with block scales: mma.sync with `.block_scale`, whose scales lie in words of the lanes that it asks.

Of A, lane 4 g + (r / 8) of a warp gives the word of row r = g or g + 8; of B, lane 4 g gives that of row g. Lanes that are not asked may hold
anything, so every lane passes the word of a row that it has. Operands are of 8 bits: one scale a row and instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

from cake_backend.cuda.context import Context, Place
from cake_backend.cuda.elementwise import resolve, stage_place, temporary
from cake_backend.cuda.faults import not_lowered
from cake_backend.cuda.mma_sync import Shape
from cake_backend.cuda.preamble import Device
from cake_backend.cuda.scalars import scalar
from cake_ir.ops.scales import WORD, first_of
from cake_ir.program import Expr, Op
from cake_ir.types import ScalesT


@dataclass(frozen=True, slots=True)
class Words:
    """Words of scales in registers: C text of the array, and of the number of the first scale in its word."""

    array: str
    first: str


@dataclass(frozen=True, slots=True)
class Scaled:
    """The scales of both operands of a product."""

    of_a: Words
    of_b: Words

    def arguments(self, k: str, m: str, n: str) -> str:
        """C text of an instruction's words, and of the byte from which it takes them."""
        low, high = (f"{self.of_a.array}[{f'2 * {m} + {i}' if m else i}]" for i in (0, 1))
        words = [f"(lane & 1u) ? {high} : {low}", f"{self.of_b.array}[{n or 0}]"]
        if self.of_a.first == self.of_b.first:
            return f"{words[0]}, {words[1]}, {_sum(self.of_a.first, k)}"
        shifted = [f"({w}) >> (8 * ({_sum(x.first, k)}))" for w, x in zip(words, (self.of_a, self.of_b), strict=True)]
        return f"{shifted[0]}, {shifted[1]}, 0"


def _sum(first: str, step: str) -> str:
    return " + ".join(x for x in (first if first != "0" or not step else "", step) if x)


def scales(ctx: Context, op: Op) -> Scaled | None:
    """What a product's scales are in registers; None where it has none."""
    found = []
    for name in ("scale_a", "scale_b"):
        e = op.operands.get(name)
        if not isinstance(e, Expr):
            return None
        assert isinstance(e.type, ScalesT)
        if not ctx.has("BLOCK_SCALED_MMA"):
            not_lowered(f"a block-scaled MMA on {ctx.program.target}", op.span)
        if e.type.source.dtype != "u32":
            not_lowered(f"block scales held as {e.type.source.dtype}", e.span, "load them as u32, four in a word")
        if (e.type.block, e.type.dtype) != (32, "ue8m0"):
            not_lowered(f"block scales of {e.type.dtype} every {e.type.block} elements", e.span)
        x = resolve(ctx, e.args[0])
        place, offset = stage_place(ctx, x if x.op in ("var", "frag_stage") else temporary(ctx, x))
        found.append(Words(_array(place, offset), scalar(ctx, first_of(e))))
    return Scaled(*found)


def _array(place: Place, offset: str) -> str:
    return f"({place.name} + {offset})" if offset else place.name


def instruction(s: Shape) -> Device:
    """The function that multiplies one tile of scaled operands; `byte` is where the words' scales begin, and known once loops are unrolled."""
    name = f"mma_scaled_m16n8k{s.k}_{s.a}_{s.b}_ue8m0_x1"
    head = f"mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k{s.k}.row.col.f32.{s.a}.{s.b}.f32.ue8m0"
    places = ", ".join(f'"+f"(d[{i}])' for i in range(4))
    values = ", ".join([*(f'"r"(a[{i}])' for i in range(4)), *(f'"r"(b[{i}])' for i in range(2)), '"r"(sa)', '"r"(sb)'])
    lines = [
        f'    case {byte}: asm volatile("{head} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}}, %10, {{{byte}, 0}}, %11, {{{byte}, 0}};" : {places} : {values}); break;'
        for byte in range(WORD)
    ]
    body = "\n".join(lines)
    return Device(name, f"\nDEVICE void {name}(float* d, const u32* a, const u32* b, u32 sa, u32 sb, int byte) {{\n  switch (byte) {{\n{body}\n  }}\n}}")


__all__ = ["Scaled", "instruction", "scales"]
