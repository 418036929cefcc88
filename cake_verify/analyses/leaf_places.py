"""Where the loads that one elementwise expression combines lie in their tensors: by axis a sum in names that mean the same in every role."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fact import fact
from cake_ir.program import Expr, Op, Program
from cake_ir.record import record
from cake_ir.types import FragT, ViewT
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import linear, resolver_of

_ELEMENTWISE = frozenset({"add", "sub", "mul", "div", "max", "min", "where", "fma", "cast", "neg", "abs", "exp", "exp2", "log", "log2", "rcp", "rsqrt", "sqrt", "tanh",
                          "sigmoid", "silu", "gelu", "erf"})  # fmt: skip
_COPIES = ("tma_load", "cp_async")


@record(eq=False)
class Leaf:
    """A load whose elements an expression combines one by one with others: `read` brings them to registers, `site` from the tensor.

    `along` gives for each named axis how the elements lie there (`row`, `col`, or `one` element for all) and the first one's place.
    """

    read: Site
    site: Site
    tensor: str
    along: dict[str, tuple[str, int, dict[str, int], int]]


def leaves_of(program: Program, s: Site) -> list[Leaf]:
    """The loads that a statement's expression combines element by element, through names that are bound once."""
    value = s.op.operands.get("value", s.op.operands.get("x"))
    if not isinstance(value, Expr) or not isinstance(value.type, FragT) or value.op in ("var", "frag"):
        return []
    reads = {read.number: read for read in _reads(program, s.role.name, value, set())}
    return [leaf for read in reads.values() if (leaf := _leaf(program, read)) is not None] if len(reads) > 1 else []


def _reads(program: Program, role: str, e: Expr, seen: set[str]) -> Iterator[Site]:
    if not isinstance(e.type, FragT) or (e.op == "var" and str(e.attrs["name"]) in seen):
        return
    if e.op == "var":
        seen.add(str(e.attrs["name"]))
        bound = sites(program).results.get((role, str(e.attrs["name"])), ())
        if len(bound) != 1 or len(bound[0].targets) != 1:
            return
        if bound[0].op.name in ("load", "ldmatrix"):
            yield bound[0]
        elif bound[0].op.name == "compute" and isinstance(value := bound[0].op.operands.get("value"), Expr):
            yield from _reads(program, role, value, seen)
    elif e.op in _ELEMENTWISE:
        for a in e.args[1:] if e.op == "where" else e.args:
            yield from _reads(program, role, a, seen)


@fact
def _filled(program: Program) -> dict[str, list[Site]]:
    """By view the operations that put something into it."""
    out: dict[str, list[Site]] = {}
    for x in sites(program).ops:
        view = x.op.operands.get("view")
        if isinstance(view, Expr) and isinstance(view.type, ViewT) and x.op.name not in ("load", "ldmatrix", "ld"):
            out.setdefault(view.type.view, []).append(x)
    return out


def _leaf(program: Program, read: Site) -> Leaf | None:
    """A load of a tensor, or of a whole view that one copy alone fills."""
    op, site = read.op, read
    view = op.operands.get("view")
    if isinstance(view, Expr) and isinstance(view.type, ViewT):
        filled = _filled(program).get(view.type.view, ())
        whole = program.views[view.type.view]
        if len(filled) != 1 or filled[0].op.name not in _COPIES or filled[0].op.attrs.get("box") is not None or any(n.op in ("rows", "cols", "T") for v in (view, filled[0].op.operands["view"]) if isinstance(v, Expr) for n in v.parts()):
            return None
        site, kinds = filled[0], ("col", "row") if len(whole.shape) == 2 else ("col",)
    else:
        t = op.type
        if op.name != "load" or not isinstance(t, FragT) or op.operands.get("mask") is not None:
            return None
        kinds = ("row",) if t.form == "rowvec" else ("col",) if t.form == "colvec" or t.rank == 1 else ("col", "row")
    along = _along(program, site.op, site.role.name, kinds)
    return Leaf(read, site, str(site.op.attrs["tensor"]), along) if along is not None else None


def _along(program: Program, op: Op, role: str, kinds: tuple[str, ...]) -> dict[str, tuple[str, int, dict[str, int], int]] | None:
    tensor, coords = program.tensors.get(str(op.attrs.get("tensor"))), op.operands.get("coords")
    if tensor is None or not isinstance(coords, tuple) or len(coords) != len(tensor.axes) or any(isinstance(c.type, FragT) for c in coords):
        return None
    resolve = resolver_of(program, role)
    out = {}
    for k, (c, axis) in enumerate(zip(coords, reversed(tensor.axes), strict=True)):
        if isinstance(axis, str):
            constant, terms = linear(resolve(c))
            if axis in out:
                return None  # an axis that a tensor has twice
            out[axis] = kinds[k] if k < len(kinds) else "one", constant, terms, k
    return out


__all__ = ["Leaf", "leaves_of"]
