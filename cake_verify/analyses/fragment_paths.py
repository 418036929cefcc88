"""How the axes of a fragment expression follow from the places that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cake_ir.program import Expr
from cake_ir.record import record
from cake_ir.types import FragT, ListT, PairT
from cake_verify.analyses.places import MODELS

_THROUGH = frozenset("cast finish pair item list_item add sub mul div floordiv mod min max neg not abs exp2 exp2_fma log2 exp log sqrt rsqrt rcp tanh sigmoid silu gelu erf "
                     "where select fma lt le gt ge eq ne and or bitand bitor bitxor shl shr".split())  # fmt: skip
"""Operations that work element by element."""

_LISTS = (PairT, ListT)

Offset = tuple[int, tuple[int, ...]]
"""A constant and the positions, in an event's values, of what is added to it."""

ZERO: Offset = (0, ())


@record()
class Leaf:
    """A place that an expression reads: its name, the position (or number) of its element in an array, and for each axis of the result
    which axis of the place it follows (0 rows, 1 columns, None neither) with how far into it."""

    name: str
    stages: int
    slot: int | None
    at: int
    row: int | None
    col: int | None
    row_from: Offset
    col_from: Offset


@dataclass(slots=True)
class Paths:
    """The leaves of one expression; `opaque` where something in it hides where elements go."""

    leaves: list[Leaf]
    opaque: bool = False


Axis = tuple[int | None, Offset]


def paths(e: Expr) -> Paths:
    """The leaves of a fragment expression whose uniform parts are `dyn` nodes."""
    out = Paths([])
    _visit(e, (0, ZERO), (1, ZERO), out)
    return out


def _visit(e: Expr, row: Axis, col: Axis, out: Paths, slot: tuple[int | None, int] = (None, 0)) -> None:
    """`row` and `col` say which axis of `e` each axis of the whole expression follows."""
    if e.op == "var":
        if isinstance(e.type, (FragT, PairT, ListT)):
            stages = e.type.stages if isinstance(e.type, FragT) else 1
            out.leaves.append(Leaf(str(e.attrs["name"]), stages, slot[0], slot[1], row[0], col[0], row[1], col[1]))
        return
    if e.op == "frag_stage":
        s = e.args[1]
        at = (int(s.attrs["i"]), 0) if s.op == "dyn" else (None, int(s.attrs["value"]))  # type: ignore[call-overload]  # positions and numbers
        _visit(e.args[0], row, col, out, at)
        return
    if e.op in ("frag_cols", "frag_rows"):
        axis = 1 if e.op == "frag_cols" else 0
        _visit(e.args[0], _shift(row, axis, e.args[1]), _shift(col, axis, e.args[1]), out, slot)
        return
    if e.op == "scales":
        _visit(e.args[0], row, col, out, slot)
        return
    if e.op == "transpose":
        _visit(e.args[0], _flip(row), _flip(col), out, slot)
        return
    if e.op in ("reduce", "sum", "excess"):
        keep = {1: 0, 0: 1}.get(e.attrs.get("axis"))  # type: ignore[call-overload]  # an axis number or None
        _visit(e.args[0], _only(row, keep), _only(col, keep), out)
        return
    if e.op in ("argmin", "argmax", "topk"):
        for a in e.args:
            _visit(a, _only(row, 0), (None, ZERO), out)
        return
    known = e.op in _THROUGH
    if not known and e.op not in MODELS and e.op not in ("const", "dyn"):
        out.opaque = True
    for i, a in enumerate(e.args):
        if i == 0 and e.op in MODELS and isinstance(a.type, (FragT, PairT, ListT)):
            continue
        form = a.type.form if isinstance(a.type, FragT) else ""
        full = isinstance(e.type, FragT) and isinstance(a.type, FragT) and (a.type.rows, a.type.cols) == (e.type.rows, e.type.cols)
        if known and (full or form in ("rowvec", "colvec", "scalar") or isinstance(a.type, _LISTS) or isinstance(e.type, _LISTS)):
            keeps_row = form not in ("colvec", "scalar")
            keeps_col = form not in ("rowvec", "scalar")
            _visit(a, row if keeps_row else (None, ZERO), col if keeps_col else (None, ZERO), out)
        else:
            out.opaque |= isinstance(a.type, FragT)
            _visit(a, (None, ZERO), (None, ZERO), out)


def _shift(axis: Axis, which: int, lo: Expr) -> Axis:
    if axis[0] != which:
        return axis
    fixed, moving = axis[1]
    if lo.op == "dyn":
        return which, (fixed, (*moving, int(lo.attrs["i"])))  # type: ignore[call-overload]  # positions are integers
    return which, (fixed + int(lo.attrs["value"]), moving)  # type: ignore[call-overload]  # a constant index is an int


def _flip(axis: Axis) -> Axis:
    return (None if axis[0] is None else 1 - axis[0]), axis[1]


def _only(axis: Axis, keep: int | None) -> Axis:
    """What is left of an axis when only one of the operand's axes survives, which stands as it stood."""
    return axis if keep is not None and axis[0] == keep else (None, ZERO)


def offset(o: Offset, values: tuple[Any, ...]) -> int:
    """The value of an offset in an event."""
    n = o[0]
    for i in o[1]:
        n += values[i]
    return n
