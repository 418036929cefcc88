"""Block scales whose places count tiles of rows and words of K along one axis: held against their elements over a whole small grid.

One block's run shows one tile of rows, and where its scales start says nothing of another's. Here the coordinates of both loads are worked out
for every tile and round of a few small arguments: each stretch of the operand has scales of its own, the same whoever loads them, and they do
not run into each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from cake_ir.ops.scales import ATOM_ROWS, WORD, region_of
from cake_ir.program import Expr, Op, Program
from cake_ir.record import record
from cake_ir.types import ScalesT, TmemT, ViewT
from cake_verify.analyses.plan import view_type
from cake_verify.analyses.positions import TooMany, arguments, parameters, positions
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import linear, resolver_of

CHOICES = 3

Cell = tuple[int, int]
"""First row and first element of K of what one load of an operand brings."""


@record()
class Misplaced:
    """Scales of operand `name` of a product, loaded at `load` from `places` for the parts of the operand that start at `cells`; `args` show it.

    `why`: `same` (two parts share scales), `other` (one part has two), `into` (the scales of two parts overlap), `beyond` (they lie behind the tensor's end).
    """

    product: Op
    name: str
    data: Op
    load: Site
    why: str
    cells: tuple[Cell, Cell]
    places: tuple[int, int]
    args: str


def misplaced_scales(program: Program) -> Iterator[Misplaced]:
    """The first contradiction of each operand's scales, where they come in tensor memory and one axis counts rows and K."""
    for site in sites(program).ops:
        for name in ("a", "b") if site.op.name == "mma" and site.op.operands.get("scale_a") is not None else ():
            loads = _loads(program, site.op, name)
            found = None if loads is None else _contradiction(program, site.op, name, *loads)
            if found is not None:
                yield found


def _loads(program: Program, product: Op, name: str) -> tuple[Site, Site, int] | None:
    """The one load of an operand and that of its scales, in one place of one role, and elements of K under one word."""
    operand, scales = product.operands[name], product.operands[f"scale_{name}"]
    t, region = scales.type if isinstance(scales, Expr) else None, region_of(scales)
    if not isinstance(t, ScalesT) or region is None or not isinstance(operand, Expr) or not isinstance(operand.type, ViewT) or operand.type.transposed:
        return None
    copies = [s.op for s in sites(program).ops if s.op.name == "tmem_copy" and isinstance(e := s.op.operands["t"], Expr) and isinstance(e.type, TmemT) and e.type.tmem == region.tmem]
    views = {e.type.view for c in copies if isinstance(e := c.operands["view"], Expr) and isinstance(e.type, ViewT)}
    data, packed = _filled_by(program, operand.type.view), _filled_by(program, next(iter(views))) if len(views) == 1 else None
    if data is None or packed is None or data.role is not packed.role or data.path != packed.path or data.arms != packed.arms:
        return None
    return data, packed, t.block * WORD


def _filled_by(program: Program, view: str) -> Site | None:
    """The one load of a view, without a box and of as many axes as a view has."""
    found = [s for s in sites(program).ops if isinstance(e := s.op.operands.get("view"), Expr) and isinstance(e.type, ViewT) and e.type.view == view and "tensor" in s.op.attrs]
    whole = len(found) == 1 and found[0].op.name == "tma_load" and found[0].op.attrs.get("box") is None and not found[0].op.attrs.get("multicast")
    return found[0] if whole and len(program.tensors[str(found[0].op.attrs["tensor"])].extents) == 2 else None


def _contradiction(program: Program, product: Op, name: str, data: Site, packed: Site, word: int) -> Misplaced | None:
    resolve = resolver_of(program, data.role.name)
    at, packed_at = data.op.operands["coords"], packed.op.operands["coords"]
    assert isinstance(at, tuple) and isinstance(packed_at, tuple)  # copies of tensors have coordinates
    (k, row), (first, line) = map(resolve, at), map(resolve, packed_at)
    lines = view_type(packed.op, "view").rows
    extent, width = program.tensors[str(packed.op.attrs["tensor"])].extents
    if linear(first) != (0, {}) or lines * word == 0 or width != 16 or not 0 < view_type(data.op, "view").rows <= ATOM_ROWS:
        return None
    room = Expr("const", (), {"value": extent}) if isinstance(extent, int) else Expr("param", (), {"name": extent})
    names = parameters(program, [k, row, line, room, *(e for s in program.schedulers.values() for e in s.tiles)])
    for args in arguments(program, names, (2, 3), CHOICES):
        try:
            found = positions(program, data, args)
        except TooMany:
            continue
        shown = ", ".join(f"{n} = {v}" for n, v in sorted(args.items()))
        place: dict[Cell, int] = {}
        cells: dict[int, Cell] = {}
        for p in found:
            cell, at = (p.value(row), p.value(k)), p.value(line)
            if not all(isinstance(x, int) for x in (*cell, at)):
                break
            if place.setdefault(cell, at) != at:
                return Misplaced(product, name, data.op, packed, "other", (cell, cell), (place[cell], at), shown)
            cells.setdefault(at, cell)
        else:
            size = found[-1].value(room) if found else None
            if not isinstance(size, int) or size < len(place) * lines:
                continue  # scales that serve several parts may be meant
            for cell, at in place.items():
                if cells[at] != cell:
                    return Misplaced(product, name, data.op, packed, "same", (cells[at], cell), (at, at), shown)
            order = sorted(cells)
            if order[-1] + lines > size:
                return Misplaced(product, name, data.op, packed, "beyond", (cells[order[-1]], cells[order[-1]]), (order[-1], size), shown)
            for a, b in pairwise(order):
                if b - a < lines:
                    return Misplaced(product, name, data.op, packed, "into", (cells[a], cells[b]), (a, b), shown)
    return None


__all__ = ["Misplaced", "misplaced_scales"]
