"""Where values come from: for each axis of a tile in shared memory or registers, the tensor axis it runs along and where it starts.

A tensor parameter that declares its extents by name (`A: LM.tma2d[LM.bf16, "M", "K"]`) says what each axis means. A load gives its
destination the axes and the coordinates at which it read; products and elementwise operations carry them on; a store says again which
elements it means. Where one axis turns up with two starts, something works on another tile than its partner.
"""

from __future__ import annotations

from typing import Any

from cake_ir.program import Expr, Op, Program
from cake_ir.record import record
from cake_ir.types import FragT, ViewT
from cake_verify.analyses import trips
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.runs import run_of
from cake_verify.analyses.sites import sites

Label = tuple[str, int, int] | tuple[()] | None
"""(axis, first element, operation that read it); None says nothing (a constant), the empty tuple that nothing is known."""

UNKNOWN: tuple[()] = ()

Axes = frozenset[str]

Tile = tuple[Label, Label, Axes]
"""Labels of rows and columns, and the axes of the matrix products that went into the values (empty: none did)."""

SUMMED = "-"
"""In front of an axis among those of a product: it was summed over, though not every operand says so."""

NO_PRODUCT: Axes = frozenset()
CONSTANT: Tile = (None, None, NO_PRODUCT)
NOTHING: Tile = (UNKNOWN, UNKNOWN, NO_PRODUCT)


def join(a: Label, b: Label) -> Label:
    """The label of elements that are combined one by one."""
    if a is None or a is b:
        return b
    if b is None:
        return a
    return a if a and b and a[0] == b[0] and a[1] == b[1] else UNKNOWN


def moved(a: Label, by: int) -> Label:
    """The label of a part that starts `by` elements later."""
    return (a[0], a[1] + by, a[2]) if a and by else a


def apart(a: Label, b: Label) -> int | None:
    """By how many elements two starts on one axis differ; None where the axes differ or are not known."""
    return a[1] - b[1] if a and b and a[0] == b[0] else None


@record()
class Box:
    """Which coordinate of a tensor access runs along the rows and the columns of the other side, with their axes' names and extents.

    A name is empty where the parameter declares none, or where the coordinate is read from memory or differs by element.
    """

    row: int | None
    col: int | None
    row_axis: str
    col_axis: str
    rows: int
    cols: int


def boxed(plan: Plan, op: Op) -> Box | None:
    """How an access of a tensor lies on the view or fragment it meets, None where that is not one rectangle."""
    coords, tensor = op.operands.get("coords"), plan.program.tensors.get(str(op.attrs.get("tensor")))
    shape = _shape(op)
    if tensor is None or not isinstance(coords, tuple) or shape is None:
        return None
    rows, cols, along = shape
    box = op.attrs.get("box")
    if isinstance(box, tuple):
        long = [k for k, n in enumerate(box) if n != 1]
        want = [n for n in (cols, rows) if n != 1]
        if [box[k] for k in long] != want:
            return None
        found = dict(zip([1 if n == 0 else 0 for n in ([0, 1] if cols != 1 and rows != 1 else [0] if cols != 1 else [1])], long, strict=False))
        row, col = found.get(0), found.get(1)
    elif along == "row":
        row, col = 0, None
    else:
        outer = tensor.rank - 1 if op.name == "cp_async_rows" else 1
        row, col = outer if tensor.rank > 1 else None, 0
    name = lambda k: _axis(plan, op, tensor.axes, coords, k)  # noqa: E731 - two uses
    along_rows = name(row)
    if op.name == "cp_async_rows" and any(along_rows in t.axes for t in plan.program.tensors.values() if t is not tensor):
        along_rows = ""  # rows by number come from anywhere along an axis that others have, too
    return Box(row, col, along_rows, name(col), rows, cols)


def _shape(op: Op) -> tuple[int, int, str] | None:
    """(rows, columns) of what a tensor access meets; `row` where a 1-D access runs along rows."""
    for e in (op.operands.get("view"), op.operands.get("x")):
        t = e.type if isinstance(e, Expr) else None
        if isinstance(t, ViewT):
            return t.rows, t.cols, ""
        if isinstance(t, FragT):
            return t.rows, t.cols, "row" if t.form == "rowvec" else ""
    t = op.type
    return (t.rows, t.cols, "row" if t.form == "rowvec" else "") if isinstance(t, FragT) else None


def _axis(plan: Plan, op: Op, axes: tuple[str | int, ...], coords: tuple[Expr, ...], k: int | None) -> str:
    if k is None or len(axes) != len(coords):
        return ""
    name = axes[len(axes) - 1 - k]
    if not isinstance(name, str) or isinstance(coords[k].type, FragT) or _looked_up(plan.program, plan.sites[op.id].role, coords[k]):
        return ""
    return name


def _looked_up(program: Program, role: str, e: Expr) -> bool:
    """Whether a coordinate comes from a table in memory: any order of tiles may be meant."""
    if e.op == "const" or e.op == "param":
        return False
    read: list[object] = []
    for n in trips.resolver_of(program, role)(e).parts():
        if n.op == "ld":
            read.append(n.attrs.get("tensor"))
        elif n.op == "var":  # bound more than once, as what is looked up in front of a loop and again in it
            read += _read_by_name(program, role, str(n.attrs["name"]))
    return bool(read) and not prefix_tensors(program).issuperset(read)


def _read_by_name(program: Program, role: str, name: str) -> list[object]:
    """The tensors that assignments to a name read numbers from."""
    found, resolve = sites(program), trips.resolver_of(program, role)
    read: list[object] = [s.op.attrs.get("tensor") for s in found.results.get((role, name), ()) if s.op.name == "ld"]
    for b in found.bindings.get((role, name), ()):
        read += [n.attrs.get("tensor") for n in resolve(b.value).parts() if n.op == "ld"]
    return read


def run_along(plan: Plan, op: Op) -> tuple[int, str] | None:
    """The coordinate, and its axis, along which `base + lm.iota(x, axis)` places the elements of a row or column vector; None for any other access."""
    coords, tensor, t = op.operands.get("coords"), plan.program.tensors.get(str(op.attrs.get("tensor"))), op.type
    if tensor is None or not isinstance(coords, tuple) or len(tensor.axes) != len(coords) or not isinstance(t, FragT) or t.form not in ("rowvec", "colvec"):
        return None
    placed = [k for k, c in enumerate(coords) if isinstance(c.type, FragT)]
    role = plan.sites[op.id].role
    run = run_of(plan.program, role, coords[placed[0]]) if len(placed) == 1 else None
    name = tensor.axes[len(coords) - 1 - placed[0]] if placed else None
    return (placed[0], name) if run is not None and isinstance(name, str) and not _looked_up(plan.program, role, run[0]) else None


def labels_at(box: Box, coords: tuple[Any, ...], op: int) -> tuple[Label, Label]:
    """The labels that one access gives, from the values of its coordinates."""
    row = None if box.row is None else (box.row_axis, coords[box.row], op) if box.row_axis else UNKNOWN
    col = None if box.col is None else (box.col_axis, coords[box.col], op) if box.col_axis else UNKNOWN
    return row, col
