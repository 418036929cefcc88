"""Along which axes of which tensors the rows and columns of tiles run, whatever their coordinates: through names, casts, elementwise operations, products,
tensor memory and shared memory, also where fragments are stored there."""

from __future__ import annotations

from cake_ir.fact import fact
from cake_ir.program import Expr, Program
from cake_ir.record import record
from cake_ir.types import FragT, TmemT, ViewT
from cake_verify.analyses.sites import Site, sites, starts_anew, view_writers
from cake_verify.analyses.tile_origins import coordinate_along

Axis = tuple[str, int, str | int]
"""A tensor, which of its axes counted from the innermost, and how its declaration spells the extent."""

Along = frozenset[Axis] | None
"""The axes that may run along one side of a tile: none for constants, None where they are not known."""

Sides = tuple[Along, Along]
"""Along the rows and along the columns."""

_CONSTANT: Sides = (frozenset(), frozenset())
_UNKNOWN: Sides = (None, None)
_BY_ELEMENT = frozenset("cast finish add sub mul div neg abs min max exp exp2 exp2_fma log log2 sqrt rsqrt rcp tanh sigmoid silu gelu erf fma where select".split())
_DEPTH = 40
_COPIES = ("tma_load", "cp_async", "cp_async_rows")


@record(eq=False)
class Product:
    """One product in its place, and the sides of both operands as they are read."""

    site: Site
    a: Sides
    b: Sides


@fact
def accumulations(program: Program) -> tuple[tuple[Product, ...], ...]:
    """The products that add to one accumulator after each other in the text, from where it is started anew."""
    out: list[list[Site]] = []
    for key, events in _accumulators(program).items():
        here: list[Site] = []
        for s in events:
            if s.op.name != "mma":
                if not _reads(s, key[1]):
                    here = []
                continue
            if starts_anew(s.op) or not here:
                here = []
                out.append(here)
            here.append(s)
    return tuple([tuple([Product(s, _sides(program, s, "a"), _sides(program, s, "b")) for s in group]) for group in out if len(group) > 1 or not _plain(group[0])])


def _plain(s: Site) -> bool:
    """Whether both operands of a product lie in shared memory: what copies have brought there is S034's."""
    a, b = s.op.operands["a"], s.op.operands["b"]
    return isinstance(a, Expr) and isinstance(b, Expr) and isinstance(a.type, ViewT) and isinstance(b.type, ViewT)


def _accumulators(program: Program) -> dict[tuple[str, str], list[Site]]:
    """Products by their accumulator, a role's name or tensor memory, with what else gives the name a value, in text order."""
    found: dict[tuple[str, str], list[Site]] = {}
    for s in sites(program).of("mma"):
        key = _accumulator(s)
        if key is not None:
            found.setdefault(key, []).append(s)
    for (role, name), products in found.items():
        bound = sites(program).results.get((role, name), ())
        if bound:
            products += bound
            products.sort(key=lambda s: s.number)
    return found


def _accumulator(s: Site) -> tuple[str, str] | None:
    acc = s.op.operands["acc"]
    if not isinstance(acc, Expr) or isinstance(acc.type, TmemT):
        return None  # regions of tensor memory are parts of each other: which of them is meant depends on columns
    while acc.op in ("frag_stage", "frag_cols", "frag_rows"):
        acc = acc.args[0]
    return (s.role.name, str(acc.attrs["name"])) if acc.op == "var" else None


def _reads(s: Site, name: str) -> bool:
    value = s.op.operands.get("value")
    return isinstance(value, Expr) and any(n.op == "var" and n.attrs["name"] == name for n in value.parts())


def _sides(program: Program, s: Site, operand: str) -> Sides:
    e = s.op.operands[operand]
    assert isinstance(e, Expr)
    return _Finder(program).of(s.role.name, e, _DEPTH)


def _both(one: Sides, other: Sides) -> Sides:
    if one is other or other is _CONSTANT:
        return one
    if one is _CONSTANT:
        return other
    (a, b), (c, d) = one, other
    return (None if a is None or c is None else a | c), (None if b is None or d is None else b | d)


class _Finder:
    """The sides of one expression; what is met again while it is looked for adds nothing."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.seen: set[tuple[str, str]] = set()

    def of(self, role: str, e: Expr, depth: int) -> Sides:
        t = e.type
        if isinstance(t, ViewT):
            return _turned(self.view(t.view, depth), t.transposed)
        if isinstance(t, TmemT):
            return self.columns(t.tmem, depth)
        if not isinstance(t, FragT) or t.form in ("rowvec", "colvec", "scalar"):
            return _CONSTANT  # of a matrix that a vector is combined with, the vector has rows or columns
        if depth == 0:
            return _UNKNOWN
        op = e.op
        if op == "var":
            return self.name(role, str(e.attrs["name"]), depth - 1)
        if op in ("frag", "const"):
            return _CONSTANT
        if op in ("frag_stage", "frag_cols", "frag_rows"):
            return self.of(role, e.args[0], depth - 1)
        if op == "transpose":
            return _turned(self.of(role, e.args[0], depth - 1), True)
        if op not in _BY_ELEMENT:
            return _UNKNOWN
        found = _CONSTANT
        for a in e.args[1:] if op == "where" or op == "select" else e.args:
            t = a.type
            if isinstance(t, FragT) and t.form != "rowvec" and t.form != "colvec":
                found = _both(found, self.of(role, a, depth - 1))
        return found

    def name(self, role: str, name: str, depth: int) -> Sides:
        """What a name is given, and what products add to it."""
        if (role, name) in self.seen:
            return _CONSTANT
        self.seen.add((role, name))
        found = _CONSTANT
        for s in sites(self.program).results.get((role, name), ()):
            op = s.op
            value = op.operands.get("value" if op.name == "compute" else "t" if op.name == "tmem_load" else "view")
            if op.name in ("load", "ldmatrix", "tmem_load", "compute") and isinstance(value, Expr):
                found = _both(found, self.of(role, value, depth))
            else:
                found = _both(found, _loaded(self.program, s) if op.name == "load" else _UNKNOWN)
        for b in sites(self.program).bindings.get((role, name), ()):
            found = _both(found, self.of(role, b.value, depth))
        return _both(found, self.added(role, name, depth))

    def added(self, role: str, name: str, depth: int) -> Sides:
        found = _CONSTANT
        for s in _products(self.program).get((role, name), ()):
            a, b = s.op.operands["a"], s.op.operands["b"]
            assert isinstance(a, Expr) and isinstance(b, Expr)
            found = _both(found, (self.of(s.role.name, a, depth)[0], self.of(s.role.name, b, depth)[0]))
        return found

    def columns(self, tmem: str, depth: int) -> Sides:
        """What a region of tensor memory holds: products, and what is stored there."""
        if ("", tmem) in self.seen:
            return _CONSTANT
        self.seen.add(("", tmem))
        found = self.added("", tmem, depth)
        for s in sites(self.program).of("tmem_store", "tmem_copy"):
            t, x = s.op.operands.get("t"), s.op.operands.get("x")
            if isinstance(t, Expr) and isinstance(t.type, TmemT) and t.type.tmem == tmem:
                found = _both(found, self.of(s.role.name, x, depth) if isinstance(x, Expr) else _UNKNOWN)
        return found

    def view(self, view: str, depth: int) -> Sides:
        """What is brought or stored into a view."""
        copied, stores = _fills(self.program)
        found = copied.get(view)
        if view not in stores:
            return _UNKNOWN if found is None else found
        if ("view", view) in self.seen or depth == 0:
            return _CONSTANT if depth else _UNKNOWN
        self.seen.add(("view", view))
        for s in stores[view]:
            given, x = s.op.operands["view"], s.op.operands.get("x")
            assert isinstance(given, Expr) and isinstance(given.type, ViewT)
            one = _turned(self.of(s.role.name, x, depth - 1), given.type.transposed) if s.op.name == "store" and isinstance(x, Expr) else _UNKNOWN
            found = one if found is None else _both(found, one)
        return _UNKNOWN if found is None else found


def _turned(sides: Sides, turned: bool) -> Sides:
    return (sides[1], sides[0]) if turned else sides


def _loaded(program: Program, s: Site) -> Sides:
    """The axes of its tensor that a load or copy gives its destination."""
    tensor, coords = program.tensors.get(str(s.op.attrs.get("tensor"))), s.op.operands.get("coords")
    if tensor is None or not isinstance(coords, tuple) or len(tensor.axes) != len(coords):
        return _UNKNOWN
    if s.op.name == "load" and any([isinstance(c.type, FragT) for c in coords]):
        return _UNKNOWN  # each element or row has a place of its own
    rows, cols = coordinate_along(s, 0), coordinate_along(s, 1)
    axes, last = tensor.axes, len(coords) - 1
    return None if rows is None or rows > last else frozenset([(tensor.name, rows, axes[last - rows])]), None if cols is None or cols > last else frozenset([(tensor.name, cols, axes[last - cols])])


@fact
def _fills(program: Program) -> tuple[dict[str, Sides], dict[str, list[Site]]]:
    """By view the axes of what copies bring, and what else writes it."""
    copied: dict[str, Sides] = {}
    stores: dict[str, list[Site]] = {}
    for view, writers in view_writers(program).items():
        for s in writers:
            if s.op.name in _COPIES:
                sides, before = _loaded(program, s), copied.get(view)
                copied[view] = sides if before is None or before == sides else _both(before, sides)
            else:
                stores.setdefault(view, []).append(s)
    return copied, stores


@fact
def _products(program: Program) -> dict[tuple[str, str], tuple[Site, ...]]:
    """By role and accumulator the products into it; regions of tensor memory have no role."""
    found: dict[tuple[str, str], list[Site]] = {}
    for s in sites(program).of("mma"):
        acc = s.op.operands["acc"]
        key = ("", acc.type.tmem) if isinstance(acc, Expr) and isinstance(acc.type, TmemT) else _accumulator(s)
        if key is not None:
            found.setdefault(key, []).append(s)
    return {key: tuple(by) for key, by in found.items()}


__all__ = ["Along", "Product", "accumulations"]
