"""Which part of which declared view an expression names, with the range of its origin."""

from __future__ import annotations

from cake_ir.fact import fact
from cake_ir.layout import ViewLayout
from cake_ir.placement import view_layout
from cake_ir.program import Expr, Program, View
from cake_ir.record import record
from cake_ir.types import ViewT
from cake_verify.analyses import ranges
from cake_verify.analyses.ranges import Range
from cake_verify.analyses.sites import sites

_MOST = 8


@record(eq=False)
class Rectangle:
    """Rows x columns of `view` in storage orientation, from (row, col) on; `stage` is the slot's expression or None for the only one."""

    view: View
    layout: ViewLayout
    row: Range
    rows: int
    col: Range
    cols: int
    transposed: bool
    stage: Expr | None

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def whole(self) -> bool:
        """Whether it is all of the view's slot."""
        return (self.rows, self.cols) == (self.layout.rows, self.layout.cols)


@fact
def rectangles(program: Program, role: str, e: Expr) -> tuple[Rectangle, ...]:
    """The rectangles that a view expression can stand for: one, or one a binding where a name was bound to several."""
    return tuple(_find(program, role, e, 8))[:_MOST]


def _find(program: Program, role: str, e: Expr, depth: int) -> list[Rectangle]:
    if not isinstance(e.type, ViewT) or depth == 0:
        return []
    if e.op == "view":
        view = program.views[str(e.attrs["view"])]
        layout = view_layout(view)
        return [Rectangle(view, layout, ranges.const(0), layout.rows, ranges.const(0), layout.cols, False, None)]
    if e.op == "var":
        bound = sites(program).bindings.get((role, str(e.attrs["name"])), ())
        return [r for b in bound for r in _find(program, role, b.value, depth - 1)]
    out = []
    for r in _find(program, role, e.args[0], depth):
        row, rows, col, cols, transposed, stage = r.row, r.rows, r.col, r.cols, r.transposed, r.stage
        if e.op == "stage":
            stage = e.args[1]
        elif e.op == "T":
            transposed = not transposed
        elif e.op == "rows":
            row, rows = ranges.add(row, ranges.of(program, role, e.args[1])), e.type.rows
        elif e.op == "cols":
            col, cols = ranges.add(col, ranges.of(program, role, e.args[1])), e.type.cols
        out.append(Rectangle(r.view, r.layout, row, rows, col, cols, transposed, stage))
    return out
