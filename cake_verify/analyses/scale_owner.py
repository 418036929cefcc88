"""Block scales that bulk copies bring: they move with the tile's fields that move the rows of their operand, and not with those of the other's."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.ops.scales import region_of
from cake_ir.program import Expr, Op, Program
from cake_ir.record import record
from cake_ir.types import TmemT, ViewT
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.tile_origins import Origin, origins
from cake_verify.analyses.trips import resolver_of


@record(eq=False)
class Foreign:
    """Scales of operand `name` of a product whose load moves with `moves`, as the other operand's rows do, and not with `rows`."""

    product: Op
    name: str
    load: Site
    moves: str
    rows: str


def foreign_scales(program: Program) -> Iterator[Foreign]:
    """The operands that get scales of the other one."""
    if not sites(program).of("bulk_load"):
        return
    for s in sites(program).of("mma"):
        if s.op.operands.get("scale_a") is None or s.op.operands.get("scale_b") is None:
            continue
        found = {name: origins(program, s.role.name, e, 0) for name in ("a", "b") if isinstance(e := s.op.operands[name], Expr)}
        if len(found) < 2 or not all(found.values()):
            continue
        for name, other in (("a", "b"), ("b", "a")):
            mine = _rows(found[name]) - _all(program, found[other])
            theirs = _rows(found[other]) - _all(program, found[name])
            loads = _loads(program, s.op, f"scale_{name}")
            moved = {f for x in loads for f in _fields(program, x)}
            if mine and theirs and loads and all(x.op.name == "bulk_load" for x in loads) and moved & theirs and not moved & mine:
                yield Foreign(s.op, name, loads[0], min(moved & theirs), min(mine))


def _rows(found: tuple[Origin, ...]) -> set[str]:
    """The fields of the tile that move the rows of an operand."""
    return {str(n.attrs["name"]) for o in found for n in o.coordinate.parts() if n.op == "field"}


def _all(program: Program, found: tuple[Origin, ...]) -> set[str]:
    return {f for o in found for f in _fields(program, o.load)}


def _fields(program: Program, s: Site) -> set[str]:
    """The fields of the tile on which the place of a load depends."""
    resolve = resolver_of(program, s.role.name)
    coords, offset = s.op.operands.get("coords"), s.op.operands.get("offset")
    places = coords if isinstance(coords, tuple) else (offset,)
    return {str(n.attrs["name"]) for e in places if isinstance(e, Expr) for n in resolve(e).parts() if n.op == "field"}


def _loads(program: Program, product: Op, name: str) -> list[Site]:
    """What fills the views that are copied into the tensor memory of an operand's scales."""
    region = region_of(product.operands[name])
    if region is None:
        return []
    copies = [s.op for s in sites(program).of("tmem_copy") if isinstance(e := s.op.operands["t"], Expr) and isinstance(e.type, TmemT) and e.type.tmem == region.tmem]
    views = {e.type.view for c in copies if isinstance(e := c.operands["view"], Expr) and isinstance(e.type, ViewT)}
    return [s for s in sites(program).ops if "tensor" in s.op.attrs and isinstance(e := s.op.operands.get("view"), Expr) and isinstance(e.type, ViewT) and e.type.view in views]


__all__ = ["Foreign", "foreign_scales"]
