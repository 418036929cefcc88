"""What copies fill in beyond the end of a tensor, followed with the numbers of one run to where a minimum or maximum would choose it.

A tensor copy gives zeros for what lies outside. A mask by position takes them away as far as it reaches; of masks that compare anything
else nothing is said, and they count as right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cake_ir.program import Expr, Op
from cake_ir.types import FragT
from cake_verify.analyses import trips
from cake_verify.analyses.labels import Label, boxed
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_bounds import Bounds

_SELECTS = {"argmin": "min", "argmax": "max", "reduce": ""}
_ELEMENTWISE = frozenset("add sub mul neg cast fma finish min max rcp div pair item".split())
_POSITIVE = frozenset("abs exp exp2 sigmoid sqrt rsqrt".split())
"""Operations whose results no fill of zeros exceeds in a maximum, or that make something else of it."""


@dataclass(frozen=True, slots=True)
class Fill:
    """Columns `lo` to `hi` hold what a copy filled in; `infinite` is where a mask has put infinities, None where it has not. `mask` is
    the last one that was applied and left some, with how many columns it lets pass."""

    lo: int = 0
    hi: int = 0
    label: Label = ()
    extent: int = 0
    infinite: int | None = None
    mask: Expr | None = None
    passed: int = 0

    @property
    def any(self) -> bool:
        return self.lo < self.hi


CLEAN = Fill()

Read = Callable[[Member, tuple[Any, ...]], Fill]


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A choice among columns that a copy filled in."""

    op: Op
    at: Expr
    member: Member
    kind: str
    fill: Fill


class Fills:
    """The filled columns of fragments by member and name."""

    def __init__(self, plan: Plan, args: dict[str, Any], bounds: Bounds) -> None:
        self.plan, self.args, self.bounds = plan, args, bounds
        self.state: dict[tuple[int, str, int], Fill] = {}
        self.chosen: list[Chosen] = []
        self._beyond: dict[tuple[int, str], int | None] = {}

    # ------------------------------------------------------------ sources

    def filled(self, label: Label, width: int) -> Fill:
        """What of `width` elements from a label on lies outside the tensor that it was read from."""
        if not label:
            return CLEAN
        extent = self._extent(label[2], label[0])
        if extent is None or not label[1] < extent < label[1] + width:  # tiles that only fill a cluster lie outside as a whole
            return CLEAN
        return Fill(extent - label[1], width, label, extent)

    def _extent(self, number: int, axis: str) -> int | None:
        """Where an axis of the tensor of a copy that fills with zeros ends in this run."""
        key = number, axis
        if key not in self._beyond:
            op = self.plan.program.ops[number]
            tensor, box = self.plan.program.tensors.get(str(op.attrs.get("tensor"))), boxed(self.plan, op)
            found = None
            if op.name == "tma_load" and tensor is not None and box is not None and tensor.extents and op.operands.get("rows") is None:
                k = box.col if box.col_axis == axis else box.row if box.row_axis == axis else None
                k = None if k is not None and self._from_memory(op, k) else k
                e = tensor.extents[len(tensor.extents) - 1 - k] if k is not None else None
                value = e if isinstance(e, int) else self.args.get(str(e))
                found = value if isinstance(value, int) and value > 0 else None
            self._beyond[key] = found
        return self._beyond[key]

    def _from_memory(self, op: Op, k: int) -> bool:
        """Whether a coordinate depends on what memory holds: a run invents that, and it need not fit the extents."""
        coords = op.operands["coords"]
        assert isinstance(coords, tuple)
        return any(n.op == "ld" for n in trips.resolver_of(self.plan.program, self.plan.sites[op.id].role)(coords[k]).walk())

    def product(self, m: Member, place: tuple[str, int], columns: Label, width: int) -> None:
        """A product whose columns are those of its right operand."""
        self.state[m.number, *place] = self.filled(columns, width)

    def loaded(self, m: Member, names: tuple[str, ...], columns: Label, width: int) -> None:
        """A row of values read from a view."""
        for name in names:
            self.state[m.number, name, 0] = self.filled(columns, width)

    # ------------------------------------------------------------ operations

    def compute(self, op: Op, targets: tuple[str, ...]) -> Callable[[Member, tuple[Any, ...]], None] | None:
        """What an elementwise operation does to filled columns."""
        tree = self.plan.code.ops[op.id].trees.get("value")
        if tree is None or op.name != "compute":
            return None
        read = self._read(tree, op)
        if read is None:
            return None

        def handler(m: Member, v: tuple[Any, ...]) -> None:
            fill = read(m, v)
            for name in targets:
                self.state[m.number, name, 0] = fill

        return handler

    def _read(self, e: Expr, op: Op) -> Read | None:
        """The fill of an expression; None where it can have none."""
        if e.op == "var":
            name = str(e.attrs["name"])
            return lambda m, v: self.state.get((m.number, name, 0), CLEAN)
        if e.op == "frag_stage" and e.args[0].op == "var":
            return self._stage(e)
        if e.op == "frag_rows":
            return self._read(e.args[0], op)
        if e.op == "where":
            return self._where(e, op)
        parts = [r for r in (self._read(a, op) for a in e.args) if r is not None]
        if e.op in _SELECTS:
            self_kind = _SELECTS[e.op] or str(e.attrs.get("op"))
            if parts and e.attrs.get("axis") == 1 and self_kind in ("min", "max") and not any(x.op in _POSITIVE for x in e.args[0].walk()):
                return self._select(e, op, self_kind, parts[0])
            return _after(parts)
        if e.op in _ELEMENTWISE:
            return _joined(parts, e.op) if parts else None
        return _after(parts)

    def _stage(self, e: Expr) -> Read:
        """One element of an array of fragments."""
        t, which = e.args[0].type, Bounds.scalar(e.args[1])
        name, stages = str(e.args[0].attrs["name"]), t.stages if isinstance(t, FragT) else 1
        return lambda m, v: self.state.get((m.number, name, which(m, v) % stages), CLEAN)

    def _select(self, e: Expr, op: Op, kind: str, inner: Read) -> Read:
        def select(m: Member, v: tuple[Any, ...]) -> Fill:
            fill = inner(m, v)
            if fill.any and len(self.chosen) < 8:
                self.chosen.append(Chosen(op, e, m, kind, fill))
            return CLEAN

        return select

    def _where(self, e: Expr, op: Op) -> Read | None:
        cond, kept, other = e.args
        inner, limit = self._read(kept, op), self.bounds.limit(cond)
        infinite = other.op == "const" and abs(float(other.attrs["value"])) == float("inf")  # type: ignore[arg-type]  # a number by its type
        if limit is None:
            return _after([inner] if inner else [])

        def where(m: Member, v: tuple[Any, ...]) -> Fill:
            fill = inner(m, v) if inner is not None else CLEAN
            found = limit(m, v)
            if found is None:
                return CLEAN
            if found[1] is None:
                return fill
            left = replace(fill, hi=min(fill.hi, found[1]), infinite=found[1] if infinite else None)
            return replace(left, mask=cond, passed=found[1]) if left.any else left

        return where


def _after(parts: list[Read]) -> Read | None:
    """What is chosen inside is told; the result has no fill of its own."""
    if not parts:
        return None

    def read(m: Member, v: tuple[Any, ...]) -> Fill:
        for part in parts:
            part(m, v)
        return CLEAN

    return read


def _joined(parts: list[Read], name: str) -> Read:
    """Columns that are filled in any operand; in a sum an infinity of one stands above what the others hold."""
    if len(parts) == 1:
        return parts[0]

    def read(m: Member, v: tuple[Any, ...]) -> Fill:
        fills = [p(m, v) for p in parts]
        most = next((f for f in fills if f.any), fills[0])
        if name in ("add", "sub", "fma"):
            cut = min((f.infinite for f in fills if f.infinite is not None), default=None)
            if cut is not None:
                return replace(most, hi=min(most.hi, cut), infinite=cut)
        masked = next((f for f in fills if f.any and f.mask is not None), most)
        return replace(masked, infinite=None)

    return read


def width_of(e: object) -> int:
    """Columns of a fragment."""
    t = e.type if isinstance(e, Expr) else None
    return t.cols if isinstance(t, FragT) else 0


__all__ = ["Chosen", "Fill", "Fills", "width_of"]
