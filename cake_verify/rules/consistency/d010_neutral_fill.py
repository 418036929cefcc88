"""D010: what the copy engine fills in beyond a tensor does not win a minimum or maximum."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import conjuncts, stated
from cake_ir.fault import Fault
from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt, op_of
from cake_ir.span import Span
from cake_ir.types import FragT, ViewT
from cake_verify.analyses import ranges
from cake_verify.analyses.fixed_scalars import definitions
from cake_verify.analyses.positions import declared_values, index_tensors
from cake_verify.analyses.sites import Site, extent_along, sites
from cake_verify.analyses.tile_origins import coordinate_along
from cake_verify.analyses.trips import canonical, linear, resolver_of, rounded_up
from cake_verify.rule import Page
from cake_verify.rules.consistency.d036_ragged_length import check as ragged_lengths
from cake_verify.rules.examples import NEAREST, edit

PAGE = Page(
    code="D010",
    title="zero fill is not neutral here",
    statement="Rows that a tensor copy fills with zeros beyond the tensor's end are masked before a minimum, a maximum or an argmin runs over them.",
    why="Zero is neutral for a sum of products and for nothing else: a filled centroid looks like the origin and wins the argmin of points near it, for extents that are no "
    "multiple of the tile.",
    failing=edit(NEAREST, ("lm.where(lm.iota(acc, axis=1, base=k * 128) < NK, acc, -lm.inf)", "acc * 1.0")),
    passing=NEAREST,
    limits="Reported where the copy certainly reaches past the end: tiles of B rows at k * B for all k below ceil(E / B) (or the least of E and another number), or from a number that conditions hold below E, or for those that a table names which `lm.assume_values` states to hold all of them, E no known multiple of B. A mask "
    "`lm.iota(x, axis=1, base=b) < E` is compared with the columns that x holds in one run, where tensors name their axes; any other mask by `lm.iota` (or a name that holds it, or a mask made of it), `lm.in_bounds` or what a masked or clipped load brought on the way "
    "counts as one that is right, and so does one that is added and has infinity, or a number of at least 10,000, on one side.",
    sources=("HW048",),
)

_FAR = 1e4
"""What is added to a score to keep it out of a maximum is as large as that (the least of f16 is -65,504)."""
_SELECTS = {"argmin": "min", "argmax": "max", "topk": "max", "reduce": ""}


def check(program: Program) -> Iterator[Fault]:
    said = mentions(program)
    if not any([_kind(n) in ("min", "max") for op in _SELECTS for n in said.get(op, ())]):
        return  # zeros are neutral in sums
    ragged = {name: (hi, span) for name, hi, span in _ragged(program)}
    if not ragged:
        return
    by_table = {span for _, (bound, span) in ragged.items() if not bound}
    for block in program.body:
        for fault in _Flow(program, block.role, ragged).run(block.body):
            if not (fault.related[0][0] in by_table and any(f.facts["role"] == block.role for f in ragged_lengths(program))):  # told there: a length ends before the tensor
                yield fault


def _kind(e: Expr) -> str:
    """What a selection or a reduction keeps: `min`, `max` or something else."""
    return _SELECTS[e.op] or str(e.attrs.get("op"))


def _ragged(program: Program) -> Iterator[tuple[str, str, Span]]:
    """(view, loop bound as text, the load) of copies whose last tile reaches past the tensor for some extents; the bound is empty where a
    table names the tile, which may be the last in any round."""
    for site in sites(program).of("tma_load", "cp_async"):
        op = site.op
        view, coords = op.operands.get("view"), op.operands.get("coords")
        if not isinstance(view, Expr) or not isinstance(view.type, ViewT) or not isinstance(coords, tuple):
            continue
        axis, extent = (0, view.type.cols) if view.type.rank == 1 else (coordinate_along(site, 0), view.type.rows)
        if axis is not None and axis < len(coords):
            bound = _reaches_past(program, site, coords[axis], extent)
            if bound is not None:
                yield view.type.view, bound, op.span


def _reaches_past(program: Program, site: Site, e: Expr, extent: int) -> str | None:
    """The bound of the loop that takes `e` past the end, where it certainly does for some extent."""
    if _named_by_table(program, site, e, extent) or _begins_inside(program, site, e, extent):
        return ""
    constant, terms = linear(resolver_of(program, site.role.name)(e))
    loop = next((s for s in site.loops if [*terms] == [f"?{s.var}"] and s.kind != "tiles"), None)
    if loop is None or terms[f"?{loop.var}"] != extent or constant < 0 or constant % extent or loop.hi is None or loop.lo is None or ranges.of(program, None, loop.lo).exact != 0:
        return None
    hi = _end(program, site.role.name, loop.hi)
    if hi.op != "cdiv" or hi.args[1].attrs.get("value") != extent or (constant and not _ahead_of_its_round(program, site, loop, constant // extent)):
        return None
    lengths = [a for a in hi.args[0].args if a.op == "param" and a.attrs["name"] == _axis_end(program, site, e)] if hi.args[0].op == "min" else [hi.args[0]]
    return _text(hi) if any(not ranges.of(program, None, x).multiple_of(extent) for x in lengths) else None


def _axis_end(program: Program, site: Site, e: Expr) -> str | int | None:
    """The extent of the axis that a coordinate counts."""
    coords, tensor = site.op.operands["coords"], program.tensors[str(site.op.attrs["tensor"])]
    return extent_along(program, site.op, next(k for k, c in enumerate(coords) if c is e)) if isinstance(coords, tuple) and len(coords) == len(tensor.extents) else None


def _ahead_of_its_round(program: Program, site: Site, loop: For, by: int) -> bool:
    """Whether a copy for a later round is issued for as long as the loop has that round."""
    resolve = resolver_of(program, site.role.name)
    for branch, arm in site.branches():
        for c in conjuncts(branch.cond) if arm else ():
            if c.op == "lt" and linear(resolve(c.args[0])) == (by, {f"?{loop.var}": 1}) and loop.hi is not None and canonical(resolve(c.args[1])) == canonical(resolve(loop.hi)):
                return True
    return False


def _begins_inside(program: Program, site: Site, e: Expr, extent: int) -> bool:
    """Whether conditions around a copy hold the start of its tile, and no more, below the end of the axis: `b * 64 <= row` where `row < S`."""
    around = [c for branch, arm in site.branches() for c in (conjuncts(branch.cond) if arm else ()) if c.op in ("lt", "le")]
    if not around:  # as of most copies
        return False
    size, resolve = _axis_end(program, site, e), resolver_of(program, site.role.name)
    at = linear(resolve(e))
    if not isinstance(size, str) or at[0] or [*at[1].values()] != [extent] or ranges.of(program, None, Expr("param", (), {"name": size})).multiple_of(extent):
        return False
    held = [(c.op, *(resolve(a) for a in c.args)) for c in around]
    ends = [high for _, low, high in held if linear(low) == at]
    return any(canonical(x) == size or any(op == "lt" and canonical(low) == canonical(x) and canonical(high) == size for op, low, high in held) for x in ends)


def _named_by_table(program: Program, site: Site, e: Expr, extent: int) -> bool:
    """Whether a coordinate is that of one of all tiles of its axis, as a table names them: the last is one."""
    if e.op == "const" or e.op == "field" or not index_tensors(program):
        return False
    at = resolver_of(program, site.role.name)(e)
    tables = {n.attrs["tensor"] for n in at.parts() if n.op == "ld"}
    terms = linear(at) if tables else (0, {})
    if terms[0] or [*terms[1].values()] != [extent]:
        return False
    coords, tensor = site.op.operands["coords"], program.tensors[str(site.op.attrs["tensor"])]
    name = next(iter(terms[1]))
    told = next((declared_values(program, str(t)) for t in tables if name.startswith(f"{t}[")), None)
    if told is None or not isinstance(coords, tuple) or len(coords) != len(tensor.extents):
        return False
    axis = next(k for k, c in enumerate(coords) if c is e)
    size, hi = tensor.extents[len(coords) - 1 - axis], _resolve(program, told.hi)
    up = rounded_up(hi)
    x = up[0] if up is not None and up[1] == extent else None
    return x is not None and x.op == "param" and x.attrs["name"] == size and not ranges.of(program, None, x).multiple_of(extent)


def _resolve(program: Program, e: Expr) -> Expr:
    """What a name stands for, or an argument is stated to be (`QT == lm.cdiv(S, 128)`)."""
    let = program.lets.get(str(e.attrs.get("name"))) if e.op == "var" else None
    if e.op == "param":
        resolve = resolver_of(program, "")
        return definitions([c for a in program.assumes for c in stated(resolve(a.cond))], [str(e.attrs["name"])]).get(str(e.attrs["name"]), e)
    return let.value if let is not None else e


def _end(program: Program, role: str, e: Expr) -> Expr:
    """The end of a loop, names of the role put out of the way."""
    return _resolve(program, resolver_of(program, role)(e) if e.op == "var" and str(e.attrs.get("name")) not in program.lets else e)


def _text(e: Expr) -> str:
    return f"({e.op} {' '.join(_text(a) for a in e.args)} {sorted((k, v) for k, v in e.attrs.items())})"


class _Flow:
    """Which places hold values of filled columns, in text order; a place's state is the copy that filled them."""

    def __init__(self, program: Program, role: str, ragged: dict[str, tuple[str, Span]]) -> None:
        self.program, self.role, self.ragged = program, role, ragged
        self.state: dict[str, tuple[str, Span] | None] = {}
        self.rows: dict[str, tuple[str, Span] | None] = {}
        """Operands of products, by the copy that filled their rows."""
        self.found: list[Fault] = []
        computed = [(s.targets, s.op.operands["value"]) for s in sites(program).of_role(role) if s.op.name == "compute"]
        # Names bound to positions or to a masked value somewhere in the role: a name keeps one meaning in practice.
        self.positions: set[str] = set()
        for targets, value in computed:
            if isinstance(value, Expr) and _numbers(value, self.positions):
                self.positions.update(targets)
        loads = [s for s in sites(program).of("load") if s.role.name == role and "tensor" in s.op.attrs]
        # What a masked or clipped load brings is the fill beyond the end: a comparison with it leaves out what lies there.
        self.positions |= {t for s in loads if s.op.attrs.get("clip") or (isinstance(mask := s.op.operands.get("mask"), Expr) and self.by_position(mask)) for t in s.targets}
        # A mask under a name, also one that is made of other masks.
        masks = [(targets, value) for targets, value in computed if isinstance(value, Expr) and isinstance(value.type, FragT) and value.type.dtype == "bool"]
        for targets, value in masks:
            if self.by_position(value):
                self.positions.update(targets)
        self.infinite = {t for targets, value in computed for t in targets if isinstance(value, Expr) and value.op == "where" and self.by_position(value.args[0])}

    def run(self, body: tuple[Stmt, ...], loops: tuple[str, ...] = ()) -> list[Fault]:
        for s in body:
            if isinstance(s, For):
                # A loop that starts later works on another tile than its number says: the last one may be peeled.
                whole = s.hi is not None and s.lo is not None and s.lo.op == "const" and s.lo.attrs["value"] == 0
                hi = _text(_end(self.program, self.role, s.hi)) if whole and s.hi is not None else ""
                self.run(s.body, (*loops, hi))
            elif isinstance(s, If):
                self.run(s.then, loops)
                self.run(s.orelse, loops)
            else:
                op = op_of(s)
                if op is not None:
                    self.op(op, s.targets if isinstance(s, Assign) else (), loops)
        return self.found

    def op(self, op: Op, targets: tuple[str, ...], loops: tuple[str, ...]) -> None:
        value = op.operands.get("value")
        result: tuple[str, Span] | None = None
        if op.name == "mma":
            acc, b = op.operands["acc"], op.operands["b"]
            if isinstance(acc, Expr) and acc.op == "var" and isinstance(b, Expr) and not (isinstance(b.type, ViewT) and b.type.transposed):
                self.state[str(acc.attrs["name"])] = self.ragged.get(b.type.view) if isinstance(b.type, ViewT) else self.rows.get(str(b.attrs.get("name")))
            return
        if op.name == "ldmatrix" or (op.name == "load" and op.attrs.get("form") == "b"):
            view = op.operands.get("view")
            for name in targets:
                self.rows[name] = self.ragged.get(view.type.view) if isinstance(view, Expr) and isinstance(view.type, ViewT) and not view.type.transposed else None
        if op.name == "load" and op.attrs.get("form") == "colvec":
            view = op.operands.get("view")
            result = self.ragged.get(view.type.view) if isinstance(view, Expr) and isinstance(view.type, ViewT) else None
        elif op.name == "compute" and isinstance(value, Expr):
            result = self.value(value, loops)
        for name in targets:
            self.state[name] = result

    def value(self, e: Expr, loops: tuple[str, ...]) -> tuple[str, Span] | None:
        """The copy whose fill may show in `e`; reports where a selection runs over it."""
        if e.op == "var":
            return self.state.get(str(e.attrs["name"]))
        if e.op in ("where", "select") and self.by_position(e.args[0]):
            return None
        parts = [self.value(a, loops) for a in e.args]
        if e.op in _SELECTS:
            kind = _kind(e)
            filled = parts[0] if parts else None
            bounded_below = kind == "max" and any(x.op == "abs" for x in e.args[0].parts())  # an absolute value is never below the fill
            if filled and kind in ("min", "max") and e.attrs.get("axis") == 1 and (not filled[0] or filled[0] in loops) and not bounded_below:
                self.found.append(Fault(
                    "D010", f"zeros filled in beyond the tensor reach this {e.op if e.op != 'reduce' else kind}, for which zero is not neutral", e.span,
                    ((filled[1], "the last tile of this copy is filled with zeros"),),
                    f"mask first: `lm.where(lm.iota(x, axis=1, base=..) < .., x, {'lm.inf' if kind == 'min' else '-lm.inf'})`, or state with `lm.assume` that the extent is a "
                    "multiple of the tile", (), {"reduction": kind},
                ))  # fmt: skip
            return None
        if e.op in ("add", "sub") and any(self.masked(a) for a in e.args):
            return None
        return next((p for p in parts if p is not None), None)

    def masked(self, e: Expr) -> bool:
        """Whether `e` is infinite, or as good as that, exactly where it was masked, so that a sum with it is too."""
        if e.op in ("where", "mul"):  # a choice, or zero and one times a number
            return self.by_position(e) and any(x.op == "const" and abs(float(x.attrs["value"])) >= _FAR for x in e.parts())  # type: ignore[arg-type]  # a number by its type
        return e.op == "var" and e.attrs["name"] in self.infinite

    def by_position(self, mask: Expr) -> bool:
        """Whether a mask speaks of positions, by `lm.iota`, `lm.in_bounds` or a name that holds the former, or what a load brought that ends where the tensor does."""
        return any(x.op in ("iota", "in_bounds") or (x.op == "var" and x.attrs["name"] in self.positions) for x in mask.parts())


def _numbers(e: Expr, known: set[str]) -> bool:
    """Whether an expression holds numbers of rows or columns: it has some, and nothing that is computed with them is another fragment."""
    if not isinstance(e.type, FragT) or e.type.dtype == "bool":
        return False
    made = [x for x in e.parts() if x.op == "iota" or (x.op == "var" and x.attrs["name"] in known)]
    return bool(made) and (e.type.dtype == "i32" or not any(x.op == "var" and isinstance(x.type, FragT) and x.attrs["name"] not in known for x in _outside(e)))


def _outside(e: Expr) -> Iterator[Expr]:
    """The parts of an expression but what positions are only shaped like."""
    yield e
    for x in e.args if e.op != "iota" else ():
        yield from _outside(x)
