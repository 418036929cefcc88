"""Where the elements of an output come from: tiles of the scheduler, members of a role, slices of the epilogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cake_ir.derive.structure import sites
from cake_ir.program import Expr, Op, Program
from cake_ir.types import FragT, ViewT


@dataclass(frozen=True, slots=True)
class OutputTiles:
    """How one store covers an output: `rows` x `columns` a tile, indexed by the scheduler fields `row_field` and `column_field`.

    `step_rows` and `step_columns` are the rectangle that one execution stores; `member_rows` rows belong to one member (0: all to each).
    Sizes are 0 where the coordinate does not depend on a tile field.
    """

    op: Op
    role: str
    rows: int
    columns: int
    row_field: str
    column_field: str
    step_rows: int
    step_columns: int
    member_rows: int

    def tile_of(self, row: int, column: int) -> tuple[int, int]:
        """The tile that an element lies in."""
        return (row // self.rows if self.rows else 0, column // self.columns if self.columns else 0)

    def name(self, tile: tuple[int, int]) -> str:
        """The tile in the schedule's field names."""
        parts = [f"{f}={i}" for f, i in ((self.row_field, tile[0]), (self.column_field, tile[1])) if f]
        return "tile (" + ", ".join(parts) + ")" if parts else "the tile"

    def part(self, row: int, column: int) -> tuple[int | None, int | None]:
        """The member that wrote an element and the slice of the epilogue, None where the coordinates do not tell."""
        member = (row % self.rows if self.rows else row) // self.member_rows if self.member_rows else None
        sliced = bool(self.columns and self.step_columns and self.step_columns < self.columns)
        return member, column % self.columns // self.step_columns if sliced else None

    @property
    def parts(self) -> tuple[int, int]:
        """Members and slices that a tile has, 1 where the coordinates do not tell."""
        return (self.rows // self.member_rows if self.member_rows and self.rows else 1,
                self.columns // self.step_columns if self.columns and self.step_columns else 1)  # fmt: skip


def unused_fields(program: Program, tiles: OutputTiles) -> list[tuple[str, int]]:
    """Tile fields that say where the output goes and that no load's coordinates use; each with the line of a load."""
    used: set[str] = set()
    line = 0
    for site in sites(program):
        coords = site.op.operands.get("coords")
        if site.op.name not in ("tma_load", "load", "cp_async", "bulk_load") or not isinstance(coords, tuple):
            continue
        line = site.op.span.line
        env = _bindings(program, site.role)
        for e in coords:
            used |= {k.removeprefix("field ") for k in _linear(e, env) if k.startswith("field ")}
    return [(f, line) for f in (tiles.row_field, tiles.column_field) if f and line and f not in used]


def output_tiles(program: Program, tensor: str) -> OutputTiles | None:
    """The tiling of an output with one row and one column coordinate; None where no store names it."""
    for site in sites(program):
        op = site.op
        if op.attrs.get("tensor") != tensor or "coords" not in op.operands or op.name not in ("tma_store", "store"):
            continue
        coords = op.operands["coords"]
        assert isinstance(coords, tuple)
        env = _bindings(program, site.role)
        inner = _linear(coords[0], env)
        outer = _linear(coords[1], env) if len(coords) > 1 else {}
        value = op.operands.get("view") or op.operands.get("x")
        t = value.type if isinstance(value, Expr) else None
        rows, cols = (t.rows, t.cols) if isinstance(t, (ViewT, FragT)) else (1, 1)
        if isinstance(t, FragT) and t.form == "rowvec":  # one value a row: the innermost coordinate runs along the rows
            outer, inner, rows, cols = inner, {}, t.rows, 1
        row_field, row_size = _field(outer)
        column_field, column_size = _field(inner)
        return OutputTiles(op, site.role, row_size, column_size, row_field, column_field, rows, cols, outer.get("role_index", 0))
    return None


def _bindings(program: Program, role: str) -> dict[str, Expr]:
    """Scalar names bound once in a role, for looking through them."""
    from cake_ir.program import Assign, statements

    out: dict[str, Expr] = {name: let.value for name, let in program.lets.items()}
    for block in program.body:
        if block.role == role:
            for s in statements(block.body):
                if isinstance(s, Assign) and isinstance(s.value, Expr) and len(s.targets) == 1:
                    out[s.targets[0]] = s.value
    return out


def _linear(e: Expr, env: Mapping[str, Expr], depth: int = 0) -> dict[str, int]:
    """Coefficients of tile fields and of the member index in a sum; what is not linear in them is left out."""
    if depth > 12:
        return {}
    if e.op == "field":
        return {f"field {e.attrs['name']}": 1}
    if e.op == "role_index":
        return {"role_index": 1}
    if e.op == "var" and str(e.attrs["name"]) in env:
        return _linear(env[str(e.attrs["name"])], env, depth + 1)
    if e.op in ("add", "sub"):
        a, b = (_linear(x, env, depth + 1) for x in e.args)
        sign = 1 if e.op == "add" else -1
        return {k: a.get(k, 0) + sign * b.get(k, 0) for k in {*a, *b}}
    if e.op == "mul":
        for x, y in (e.args, e.args[::-1]):
            if x.op == "const" and isinstance(x.attrs["value"], int):
                return {k: v * x.attrs["value"] for k, v in _linear(y, env, depth + 1).items()}
    return {}


def _field(linear: Mapping[str, int]) -> tuple[str, int]:
    """The tile field with the largest coefficient: a coordinate of plain 1 is a batch index, not a tile."""
    found = [(k.removeprefix("field "), v) for k, v in linear.items() if k.startswith("field ") and v > 1]
    return max(found, key=lambda kv: kv[1], default=("", 0))
