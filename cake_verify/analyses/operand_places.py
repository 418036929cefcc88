"""What places the tiles that an operand of a product is read from: fields of the tile, numbers that memory holds, rounds of loops."""

from __future__ import annotations

from cake_ir.program import Expr, Program
from cake_verify.analyses.sites import VIEW_COPIES, Site, on_view, sites, view_writers
from cake_verify.analyses.trips import resolver_of


def placed_by(program: Program, role: str, e: Expr) -> frozenset[str] | None:
    """`tile.m` (each field), `memory` and `round`, as the coordinates of what brings an operand depend on them; None where more than copies makes it."""
    found: set[str] = set()
    views = {str(n.attrs["view"]) for n in e.parts() if n.op == "view"}
    if e.op == "var":
        for s in sites(program).results.get((role, str(e.attrs["name"])), ()):
            view = on_view(s.op)
            if s.op.name not in ("ldmatrix", "load") or not view:
                return None
            views.add(view)
    for view in views:
        for s in view_writers(program).get(view, ()):
            if s.op.name not in VIEW_COPIES:
                return None
            found |= _placed(program, s)
    return frozenset(found) if views else None


def _placed(program: Program, s: Site) -> set[str]:
    resolve, found = resolver_of(program, s.role.name), set[str]()
    for key in ("coords", "rows", "col"):
        o = s.op.operands.get(key)
        for e in o if isinstance(o, tuple) else (o,):
            for n in resolve(e).parts() if isinstance(e, Expr) else ():
                if n.op == "field":
                    found.add(f"tile.{n.attrs['name']}")
                elif n.op == "ld":
                    found.add("memory")
                elif n.op == "var" and not any(n.attrs["name"] == x.var and x.kind == "tiles" for x in s.loops):
                    found.add("round" if any(n.attrs["name"] == x.var for x in s.loops) else "memory")  # a name that no expression stands for
    return found

__all__ = ["placed_by"]
