"""Q011: a tile order made by hand reaches every tile once."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from cake_ir.fault import Fault
from cake_ir.program import Expr, If, Program
from cake_ir.types import FragT, ViewT
from cake_verify.analyses.affine import affine
from cake_verify.analyses.positions import Position, TooMany, arguments, around, parameters, positions
from cake_verify.analyses.sites import Site, sites, stores_by_tensor
from cake_verify.analyses.trips import resolver_of
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_ORDER = '''
@cake.schedule(target="sm_90a")
def copy(lm, X: LM.gmem2d[LM.f32, "ROWS", 1152], Y: LM.gmem2d[LM.f32, "ROWS", 1152], *, ROWS=9, COLS=9, G=8):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(ROWS * COLS,), names=("id",))
    with work:
        for t in lm.tiles(sched):
            first = t.id // (G * COLS) * G
            width = lm.min(G, ROWS - first)
            row = first + t.id % (G * COLS) % width
            col = t.id % (G * COLS) // width
            x = lm.load(X, coords=(col * 128, row), shape=(1, 128), clip=True)
            lm.store(Y, x, coords=(col * 128, row), clip=True)
'''

PAGE = Page(
    code="Q011",
    title="a tile order that misses tiles",
    statement="Where the coordinates of a store are computed from a tile's number, no two tiles write one place, and as many as a tensor with declared extents has blocks write all of it; without extents, as many tiles as fill whole rows fill them.",
    why="Orders that group rows for the cache are right for whole groups. The last group is narrower: without a clamp its tiles lie outside the tensor, and those inside are never written.",
    failing=edit(_ORDER, ("width = lm.min(G, ROWS - first)", "width = G")),
    passing=_ORDER,
    limits="Tried on small arguments that keep every `lm.assume`. Linear coordinates are Q001. Where the launch reads the tensor too, several tiles may write one place. Masked stores, stores of some rows, and tensors with several stores are only looked at for places written twice.",
)


def check(program: Program) -> Iterator[Fault]:
    for stores in stores_by_tensor(program):
        for s in stores:
            fault = _store(program, s, alone=len(stores) == 1)
            if fault:
                yield fault


def _store(program: Program, s: Site, alone: bool) -> Fault | None:
    coords = s.op.operands["coords"]
    assert isinstance(coords, tuple)
    if any(isinstance(e.type, FragT) for e in coords) or all(affine(program, s.role.name, e) is not None for e in coords):
        return None
    if not any(loop.kind == "tiles" for loop in s.loops):
        return None
    resolve = resolver_of(program, s.role.name)
    at = tuple([resolve(e) for e in coords])
    tensor = program.tensors[str(s.op.attrs["tensor"])]
    names = parameters(program, [*at, *around(s, program), *(Expr("param", (), {"name": e}) for e in tensor.extents if isinstance(e, str))])
    sizes = sorted({int(n.attrs["value"]) + 1 for e in at for n in e.parts() if n.op == "const" and isinstance(n.attrs["value"], int) and 1 < n.attrs["value"] <= 16})[:2]  # type: ignore[call-overload, operator]  # integers
    for args in arguments(program, names, sizes, limit=6):
        try:
            fault = _run(program, s, at, args, names, alone)
        except TooMany:
            continue
        if fault:
            return fault
    return None


def _run(program: Program, s: Site, at: tuple[Expr, ...], args: dict[str, int], names: set[str], alone: bool) -> Fault | None:
    """What is wrong for one set of arguments."""
    tensor = program.tensors[str(s.op.attrs["tensor"])]
    written: dict[tuple[int, ...], Position] = {}
    span = s.op.spans.get("coords", s.op.span)
    help = "clamp the last group, or let the scheduler order tiles: `raster=` and `swizzle=`"
    read = [n.args[0] for e in at for n in e.parts() if n.op == "ld" and n.args]  # places that memory names are one only where the same element names them
    executions = positions(program, s, args)
    for p in executions:
        corner, named = tuple(p.values(at)), tuple(p.values(tuple(read))) if read else ()
        if not all([isinstance(v, int) for v in (*corner, *named)]):
            return None
        other = written.setdefault((*corner, *named), p)
        if other.tile != p.tile and other.inside and p.inside and s.op.operands.get("mask") is None and not _added_to(program, tensor.name):
            return Fault("Q011", f"tiles {_tile(other)} and {_tile(p)} both write `{tensor.name}` at {_place(corner)}{_given(args, names)}", span, (), help, (),
                         {"first": list(other.tile), "second": list(p.tile)})  # fmt: skip
    hole = (_hole(program, s, set(written), args, len(executions)) or _ragged(s, set(written))) if alone and written and not read else None
    if hole is not None:
        return Fault("Q011", f"no tile writes `{tensor.name}` at {_place(hole)}{_given(args, names)}", span, ((tensor.span, "declared here"),), help, (), {"tiles": len(written), "place": list(hole)})
    return None


def _added_to(program: Program, tensor: str) -> bool:
    """Whether the launch reads a tensor too, so that a later tile may add to what it finds."""
    return any(s.op.attrs.get("tensor") == tensor for s in sites(program).of("load", "ld", "tma_load", "cp_async", "bulk_load"))


def _hole(program: Program, s: Site, written: set[tuple[int, ...]], args: dict[str, int], tiles: int) -> tuple[int, ...] | None:
    """A block of the tensor that nobody writes, where blocks lie side by side, extents are known and there are tiles enough: of fewer, what is left out is another's."""
    op, tensor = s.op, program.tensors[str(s.op.attrs["tensor"])]
    block = _block(s)
    if op.operands.get("mask") is not None or op.operands.get("rows") is not None or op.attrs.get("box") is not None or block is None or tensor.rank > 2:
        return None
    sizes = [args.get(e) if isinstance(e, str) else e for e in reversed(tensor.extents)]
    if len(sizes) != tensor.rank or any(n is None for n in sizes):
        return None
    if any(v % n for corner in written for v, n in zip(corner, block, strict=False)) or tiles < prod(-(-(size or 0) // n) for size, n in zip(sizes, block, strict=False)):
        return None
    outer = range(0, sizes[1] or 0, block[1]) if tensor.rank == 2 else (None,)
    for row in outer:
        for col in range(0, sizes[0] or 0, block[0]):
            corner = (col,) if row is None else (col, row)
            if corner not in written:
                return corner
    return None


def _ragged(s: Site, written: set[tuple[int, ...]]) -> tuple[int, ...] | None:
    """A place left out although there are as many tiles as fill whole rows: most rows are full, and the last ones hold the rest.

    This needs no extents. Triangles and other shapes that are meant have few full rows.
    """
    if s.op.operands.get("mask") is not None or s.op.operands.get("rows") is not None or len(next(iter(written))) != 2 or any(isinstance(p, If) for p in s.path):
        return None
    for axis in (1, 0):
        lines: dict[int, set[int]] = {}
        for corner in written:
            lines.setdefault(corner[axis], set()).add(corner[1 - axis])
        across = set().union(*lines.values())
        expected, rest = divmod(len(written), len(across))
        full = [at for at, line in lines.items() if line == across]
        if rest or expected >= len(lines) or 2 * len(full) < expected:
            continue
        at, line = min((at, line) for at, line in lines.items() if line != across)
        gap = min(across - line)
        return (gap, at) if axis == 1 else (at, gap)
    return None


def _block(s: Site) -> tuple[int, int] | None:
    """(columns, rows) that one store writes."""
    source = s.op.operands.get("view") or s.op.operands.get("x")
    t = source.type if isinstance(source, Expr) else None
    if isinstance(t, ViewT):
        return t.cols, t.rows if t.rank == 2 else 1
    if isinstance(t, FragT):
        return (t.rows, 1) if t.form == "rowvec" else (t.cols, t.rows if t.rank == 2 else 1)
    return (1, 1)


def _tile(p: Position) -> str:
    return str(p.tile[0]) if len(p.tile) == 1 else f"({', '.join(map(str, p.tile))})"


def _place(corner: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, corner))})"


def _given(args: dict[str, int], names: set[str]) -> str:
    shown = ", ".join(f"{n} = {args[n]}" for n in sorted(names) if n in args)
    return f" for {shown}" if shown else ""
