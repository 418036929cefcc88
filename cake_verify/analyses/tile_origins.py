"""Which loads the rows and columns of a tile come from: through names, casts, elementwise operations, products, tensor memory and shared memory."""

from __future__ import annotations

from cake_ir.fact import fact
from cake_ir.program import Expr, Program
from cake_ir.record import record
from cake_ir.types import FragT, TmemT, ViewT
from cake_verify.analyses.sites import Site, boxed, sites, view_writers
from cake_verify.analyses.trips import resolver_of

_DEPTH = 12
_CARRIES = frozenset({"cast", "where", "select", "add", "sub", "mul", "div", "neg", "exp", "exp2", "exp2_fma", "tanh", "abs", "finish", "max", "min", "sigmoid", "silu", "fma"})
_ROWS, _COLUMNS = 0, 1


@record(eq=False)
class Origin:
    """A load that brings what lies along an axis of a tile, and which of its coordinates counts it; `size` elements come at once."""

    load: Site
    axis: int
    size: int
    coordinate: Expr
    """Names resolved."""


@fact
def _origins_of(program: Program, role: str, name: str, axis: int) -> tuple[Origin, ...]:
    """The origins of a tile that has a name, found once."""
    found = _Finder(program, role)
    return tuple(found.out) if found.name(name, axis, _DEPTH) else ()


def origins(program: Program, role: str, e: Expr, axis: int) -> tuple[Origin, ...]:
    """The loads along the rows (0) or columns (1) of an expression of tiles; nothing where one of several is not known."""
    e = _tile(e)
    if e.op == "var":
        return _origins_of(program, role, str(e.attrs["name"]), axis)
    found = _Finder(program, role)
    return tuple(found.out) if found.follow(e, axis, _DEPTH) else ()


def _tile(e: Expr) -> Expr:
    """The tile of which an expression is made by scalars and casts alone, or the expression itself."""
    while e.op in _CARRIES and e.op not in ("where", "select"):
        long = [a for a in e.args if isinstance(a.type, FragT) and a.type.form not in ("rowvec", "colvec")]
        if len(long) != 1:
            break
        e = long[0]
    return e


class _Finder:
    def __init__(self, program: Program, role: str) -> None:
        self.program, self.role = program, role
        self.out: list[Origin] = []
        self.seen: set[tuple[str, int]] = set()
        self.views: set[tuple[str, int]] = set()

    def follow(self, e: Expr, axis: int, depth: int) -> bool:
        """Adds the origins of one expression; False where something in it is not known."""
        if depth == 0:
            return False
        t = e.type
        if isinstance(t, ViewT):
            return self._view(t, axis)
        if e.op == "var" and isinstance(t, FragT):
            return self.name(str(e.attrs["name"]), axis, depth)
        if e.op not in _CARRIES:
            return e.op in ("frag", "const") or not isinstance(t, FragT)
        tiles = [a for a in (e.args[1:] if e.op in ("where", "select") else e.args) if isinstance(a.type, FragT)]
        long = [a for a in tiles if isinstance(a.type, FragT) and a.type.form not in ("rowvec", "colvec")]  # a vector has what it is a vector of
        return all([self.follow(a, axis, depth - 1) for a in long])

    def name(self, name: str, axis: int, depth: int) -> bool:
        """Adds the origins of what a name was bound to, or accumulated in."""
        if (name, axis) in self.seen:
            return True
        self.seen.add((name, axis))
        for s in sites(self.program).results.get((self.role, name), ()):
            value = s.op.operands.get("value")
            if s.op.name == "load" and s.op.operands.get("coords") is not None:
                if not self._load(s, axis):
                    return False
            elif s.op.name in ("ldmatrix", "load") and isinstance(view := s.op.operands.get("view"), Expr) and isinstance(view.type, ViewT):
                if not self._view(view.type, axis):
                    return False
            elif s.op.name == "tmem_load" and isinstance(source := s.op.operands.get("t"), Expr) and isinstance(source.type, TmemT):
                if not self._product(source.type.tmem, True, axis, depth - 1):
                    return False
            elif s.op.name != "compute" or not isinstance(value, Expr) or not self.follow(value, axis, depth - 1):
                return False
        return all([self.follow(b.value, axis, depth - 1) for b in sites(self.program).bindings.get((self.role, name), ())]) and self._product(name, False, axis, depth - 1)

    def _product(self, name: str, tmem: bool, axis: int, depth: int) -> bool:
        """Products into an accumulator: its rows are those of `a`, its columns the rows of `b` as it is read."""
        for role, acc, a, b in _products(self.program):
            if acc == (name, tmem) and (tmem or role == self.role):
                inner = _Finder(self.program, role)
                inner.out, inner.views = self.out, self.views
                if not inner.follow(a if axis == _ROWS else b, _ROWS, depth):
                    return False
        return True

    def _view(self, t: ViewT, axis: int) -> bool:
        axis = 1 - axis if t.transposed else axis
        if (t.view, axis) in self.views:
            return True
        self.views.add((t.view, axis))
        loads = _fills(self.program).get(t.view, ())
        return bool(loads) and all([self._load(s, axis) for s in loads])

    def _load(self, s: Site, axis: int) -> bool:
        k = coordinate_along(s, axis)
        coords = s.op.operands.get("coords")
        if k is None or not isinstance(coords, tuple) or k >= len(coords) or isinstance(coords[k].type, FragT):
            return False
        self.out.append(Origin(s, k, boxed(s.op, k), resolver_of(self.program, s.role.name)(coords[k])))
        return True


def coordinate_along(s: Site, axis: int) -> int | None:
    """Which coordinate of a load runs along the rows (0) or columns (1) of what it fills; None where none does alone."""
    view, box, t = s.op.operands.get("view"), s.op.attrs.get("box"), s.op.type
    if s.op.name == "cp_async_rows":
        return 0 if axis == _COLUMNS else None
    if isinstance(view, Expr) and isinstance(view.type, ViewT):
        if isinstance(box, tuple):
            long = [k for k, n in enumerate(box) if n != 1]
            if [box[k] for k in long] != [view.type.cols, view.type.rows]:
                return None
            return long[1 - axis]
        return 0 if view.type.rank == 1 or axis == _COLUMNS else 1
    if isinstance(t, FragT):
        return 0 if t.rank == 1 or axis == _COLUMNS or t.form == "rowvec" else 1
    return None


@fact
def _fills(program: Program) -> dict[str, tuple[Site, ...]]:
    """By view what brings something into it; a view that anything else writes is left out."""
    return {name: by for name, by in view_writers(program).items() if all([s.op.name in ("tma_load", "cp_async", "cp_async_rows") for s in by])}


@fact
def _products(program: Program) -> tuple[tuple[str, tuple[str, bool], Expr, Expr], ...]:
    """Every product: its role, its accumulator (with whether that is tensor memory) and its operands."""
    out = []
    for s in sites(program).of("mma"):
        acc, a, b = (s.op.operands[k] for k in ("acc", "a", "b"))
        if isinstance(acc, Expr) and isinstance(a, Expr) and isinstance(b, Expr):
            t = acc.type
            if isinstance(t, TmemT):
                out.append((s.role.name, (t.tmem, True), a, b))
            else:
                names = [n for n in acc.parts() if n.op == "var" and isinstance(n.type, FragT)]
                out += [(s.role.name, (str(n.attrs["name"]), False), a, b) for n in names[:1]]
    return tuple(out)


__all__ = ["Origin", "coordinate_along", "origins"]
