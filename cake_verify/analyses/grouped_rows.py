"""Which rows of a grouped tile its stores write, for numbers of rows that a tile of a group can have.

A tile of a grouped schedule has `t.rows` rows from `t.row0` on, 1 to the scheduler's `block`; the last tile of a group has fewer than a
block. What a store writes behind them belongs to the next group, what no store writes stays as it was. Tried are the multiples of 16 and their neighbours, where
what members write changes over from one to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cake_ir.fault import Fix
from cake_ir.ops.vectors import rows_placed
from cake_ir.program import Expr, For, If, Program, Scheduler
from cake_ir.record import record
from cake_ir.types import FragT, TileT, ViewT
from cake_verify.analyses import edits, scalar_operations, trips
from cake_verify.analyses.positions import declared_values
from cake_verify.analyses.sites import Site, sites

MOST_ROWS = 1024
STEP = 16
FAR = 1 << 20
"""Where all groups end, from the first row of one that is not the last."""


@record()
class Misplaced:
    """Row `row` of a tile that has `rows` rows, written by `member` at `site` though it is not the tile's, or (no site) by nobody."""

    rows: int
    row: int
    member: int
    site: Site | None


def misplaced(program: Program, stores: Sequence[Site]) -> Misplaced | None:
    """The first row that is written but not the tile's, else the first that is the tile's and not written; None where all is well or unknown.

    `stores` are all those to one tensor.
    """
    found = [_grouped(program, s) for s in stores] if any([d.kind == "grouped" for d in program.schedulers.values()]) else []
    if not found or any(f is None for f in found):
        return None
    tiles = [f for f in found if f is not None]
    block = tiles[0][1].block
    if block is None or block > MOST_ROWS:
        return None
    gap: Misplaced | None = None
    for rows in sorted({r + d for r in range(0, block + 1, STEP) for d in (-1, 0, 1) if 1 <= r + d <= block}, reverse=True):
        written: set[int] = set()
        for s, (loop, _) in zip(stores, tiles, strict=True):
            for member in range(s.role.members):
                intervals = _intervals(program, s, loop, {"rows": rows, "row0": 0}, member)
                if intervals is None:
                    return None
                for first, last in intervals:
                    if first < last and (first < 0 or last > rows):
                        return Misplaced(rows, first if first < 0 else max(first, rows), member, s)
                    written.update(range(first, last))
        if gap is None and len(written) < rows:
            gap = Misplaced(rows, min(set(range(rows)) - written), 0, None)
    return gap


def _grouped(program: Program, s: Site) -> tuple[For, Scheduler] | None:
    """The loop over grouped tiles around a store of rows and columns whose second coordinate counts rows from the tile's first on."""
    coords = s.op.operands.get("coords")
    if not isinstance(coords, tuple) or not (_placed(s) if rows_placed(coords) else len(coords) == 2 and (_copied(s) or _masked(s))):
        return None
    for loop in s.loops:
        if loop.kind == "tiles" and isinstance(loop.var_type, TileT) and program.schedulers[str(loop.scheduler)].kind == "grouped":
            return loop, program.schedulers[str(loop.scheduler)]
    return None


def _placed(s: Site) -> bool:
    """Whether a tile's rows are placed by one row vector, all in a line: `t.row0 + lm.iota(o, 0)`."""
    coords = s.op.operands.get("coords")
    return s.op.name == "store" and isinstance(coords, tuple) and [isinstance(c.type, FragT) for c in coords].count(True) == 1


def _row_of(s: Site) -> Expr:
    """The coordinate that counts rows."""
    coords = s.op.operands["coords"]
    assert isinstance(coords, tuple)
    return next((c for c in coords[2:] if isinstance(c.type, FragT)), coords[1])


def _copied(s: Site) -> bool:
    """Whether the copy engine stores a view."""
    return s.op.name == "tma_store" and s.op.attrs.get("box") is None


def _masked(s: Site) -> bool:
    """Whether threads store a tile, or one row of it."""
    x, coords = s.op.operands.get("x"), s.op.operands.get("coords")
    if s.op.name != "store" or not isinstance(x, Expr) or not isinstance(x.type, FragT) or x.type.form in ("rowvec", "colvec", "scalar"):
        return False
    return x.type.rank == 2 or (s.op.operands.get("mask") is None and isinstance(coords, tuple) and not any(isinstance(c.type, FragT) for c in coords))


def _rows(program: Program, s: Site, loop: For, tile: Mapping[str, int], member: int) -> tuple[int, int] | None:
    """How many rows a store holds, and how many of them it lets through."""
    source = s.op.operands["view" if _copied(s) else "x"]
    assert isinstance(source, Expr) and isinstance(source.type, ViewT | FragT)
    held, count = source.type.rows, s.op.operands.get("rows")
    if not _copied(s):
        mask = s.op.operands.get("mask")
        if isinstance(mask, Expr) and mask.op == "var":
            bound = sites(program).results.get((s.role.name, str(mask.attrs["name"])), ())
            value = bound[0].op.operands.get("value") if len(bound) == 1 else None
            mask = value if isinstance(value, Expr) else mask
        if isinstance(mask, Expr) and mask.op in ("lt", "le"):  # row numbers that count up from the first one's
            first, end = (_value(program, s, loop, a, tile, member) for a in mask.args)
            return None if first is None or end is None else (held, int(end - first) + (mask.op == "le"))
        if isinstance(mask, Expr) and mask.op != "in_bounds":
            return None
        count = mask.args[1] if isinstance(mask, Expr) else None
    passed = held if count is None else _value(program, s, loop, count, tile, member) if isinstance(count, Expr) else None
    return None if passed is None else (held, int(passed))


class _Unknown(Exception):
    """Something decides which rows a store writes that is no number here."""


def _intervals(program: Program, s: Site, loop: For, tile: Mapping[str, int], member: int) -> list[tuple[int, int]] | None:
    """The rows from the tile's first on that a member's store writes in all rounds of the loops that its row follows; None where that is unknown."""
    row = _row_of(s)
    resolve = trips.resolver_of(program, s.role.name)
    followed = {str(n.attrs["name"]) for e in (row, *(c.cond for c in s.path if isinstance(c, If))) for n in resolve(e).parts() if n.op == "var"}
    found = []
    try:
        for at in _rounds(program, s, loop, tile, member, followed, 0, 0):
            first, rows = _value(program, s, loop, row, at, member), _rows(program, s, loop, at, member)
            if first is None or rows is None:
                return None
            found.append((int(first), int(first) + max(0, min(rows[1], rows[0]))))
    except _Unknown:
        return None
    return found


def _rounds(program: Program, s: Site, loop: For, at: Mapping[str, int], member: int, followed: set[str], depth: int, arm: int) -> Iterator[Mapping[str, int]]:
    """The values of loop variables under which a store happens, beside the tile's fields."""
    if depth == len(s.path):
        yield at
        return
    here = s.path[depth]
    if isinstance(here, If):
        held = _value(program, s, loop, here.cond, at, member)
        if held is None:
            raise _Unknown
        if bool(held) == s.arms[arm]:
            yield from _rounds(program, s, loop, at, member, followed, depth + 1, arm + 1)
        return
    lo, hi = (_value(program, s, loop, e, at, member) if e is not None and here.var in followed else None for e in (here.lo, here.hi))
    if here is loop or lo is None or hi is None:
        yield from _rounds(program, s, loop, at, member, followed, depth + 1, arm)
        return
    for i in range(int(lo), min(int(hi), int(lo) + MOST_ROWS + 2)):
        yield from _rounds(program, s, loop, {**at, f"?{here.var}": i}, member, followed, depth + 1, arm)


def _value(program: Program, s: Site, loop: For, e: Expr, tile: Mapping[str, int], member: int, depth: int = 8) -> int | float | bool | None:
    if e.op == "const":
        value = e.attrs["value"]
        return value if isinstance(value, int | float) else None
    if e.op == "role_index":
        return member
    if e.op == "param" and str(e.attrs["name"]) == _all_rows(program, loop):
        return FAR
    if e.op == "field" and e.args and e.args[0].attrs.get("name") == loop.var:
        return tile.get(str(e.attrs["name"]))
    if e.op == "var":
        name = str(e.attrs["name"])
        if f"?{name}" in tile:
            return tile[f"?{name}"]
        if name in program.lets:
            return _value(program, s, loop, program.lets[name].value, tile, member, depth - 1) if depth else None
        bound = sites(program).bindings.get((s.role.name, name), ())
        if len(bound) == 1 and depth:
            return _value(program, s, loop, bound[0].value, tile, member, depth - 1)
        made = sites(program).results.get((s.role.name, name), ())
        value = made[0].op.operands.get("value") if len(made) == 1 and isinstance(e.type, FragT) and e.type.form == "rowvec" else None
        return _value(program, s, loop, value, tile, member, depth - 1) if isinstance(value, Expr) and depth else None
    if e.op == "iota":  # of a row vector of row numbers, the first
        return None if e.attrs.get("axis") != 0 else _value(program, s, loop, e.args[1], tile, member, depth) if len(e.args) > 1 else 0
    values = [_value(program, s, loop, a, tile, member, depth) for a in e.args]
    found = scalar_operations.apply(e.op, values)
    return found if isinstance(found, int | float) else None


def _all_rows(program: Program, loop: For) -> str:
    """The argument at which the last group ends, where `lm.assume_values` says so of the offsets."""
    stated = declared_values(program, str(program.schedulers[str(loop.scheduler)].offsets))
    if stated is None:
        return ""
    constant, terms = trips.linear(trips.resolver_of(program, "")(stated.hi))
    return next(iter(terms)) if constant == 1 and list(terms.values()) == [1] else ""


def rows_left(program: Program, s: Site) -> Fix | None:
    """The edit that gives a store of a grouped tile the rows that the group has left behind its coordinate, at most what the view holds."""
    found, coords, view, mask = _grouped(program, s), s.op.operands.get("coords"), s.op.operands.get("view"), s.op.operands.get("mask")
    if found is None or not isinstance(coords, tuple):
        return None
    t, at = trips.written(found[0].var), trips.spoken(_row_of(s))
    inside = "" if at == f"{t}.row0" else at.removeprefix(f"{t}.row0 + ")
    left = f"{t}.rows" if not inside else f"{t}.rows - {inside}" if inside != at else f"{t}.row0 + {t}.rows - ({at})"
    if isinstance(mask, Expr):
        rows = mask.args[1] if mask.op == "in_bounds" and not isinstance(_row_of(s).type, FragT) else None
        return edits.replace(rows.span, left) if rows is not None and rows.span.line and rows.span.line == rows.span.end_line else None
    if not _copied(s) or not isinstance(view, Expr) or not isinstance(view.type, ViewT):
        return None
    text = f"lm.min({view.type.rows}, {left})"
    return edits.replace(s.op.spans["rows"], text) if "rows" in s.op.spans else edits.add_argument(s.op.span, f"rows={text}")
