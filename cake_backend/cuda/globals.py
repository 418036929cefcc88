"""Tensors in global memory as kernel parameters: pointer, strides and extents, each passed only where it is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cake_backend.manifest import Param

if TYPE_CHECKING:
    from cake_backend.cuda.context import Context

ELEMENT = {"bf16": "u16", "f16": "u16", "e4m3": "u8", "e5m2": "u8", "ue8m0": "u8", "i8": "i8", "u8": "u8", "f32": "float", "tf32": "float",
           "i32": "int", "u32": "u32", "i64": "i64", "u64": "u64", "bool": "u8"}  # fmt: skip
"""C type of an element in memory."""


@dataclass(slots=True)
class GlobalParams:
    """Parameters that tensors in global memory need, in the order in which the kernel takes them."""

    names: dict[tuple[str, str, int], str] = field(default_factory=dict)
    """(tensor, kind, dim) to C name; kind is ptr, stride or extent, dim counts from the outermost."""

    def ordered(self, tensor: str) -> list[tuple[Param, str]]:
        """The parameters of one tensor: pointer, then strides, then extents."""
        out = []
        for kind in ("ptr", "stride", "extent"):
            for (name, k, dim), text in sorted(self.names.items(), key=lambda x: x[0][2]):
                if name == tensor and k == kind:
                    out.append((Param(kind, tensor=tensor, dim=None if kind == "ptr" else dim), text))
        return out


def pointer(ctx: Context, tensor: str) -> str:
    """C name of a tensor's address."""
    return _name(ctx, tensor, "ptr", 0, tensor)


def stride(ctx: Context, tensor: str, dim: int) -> str:
    """C name of the distance in elements between neighbours along `dim` (from the outermost); the innermost one is 1."""
    return _name(ctx, tensor, "stride", dim, f"{tensor}_stride{dim}")


def extent(ctx: Context, tensor: str, dim: int) -> str:
    """C text of a tensor's extent along `dim`: the declared scalar or constant, else a parameter."""
    declared = ctx.program.tensors[tensor].extents
    if declared:
        e = declared[dim]
        if isinstance(e, int):
            return str(e)
        bound = ctx.globals.get(e)
        text = getattr(bound, "text", None)
        if text is not None:
            return text
    return _name(ctx, tensor, "extent", dim, f"{tensor}_extent{dim}")


def _name(ctx: Context, tensor: str, kind: str, dim: int, wanted: str) -> str:
    key = (tensor, kind, dim)
    if key not in ctx.params.names:
        ctx.params.names[key] = ctx.names.claim(wanted)
    return ctx.params.names[key]
