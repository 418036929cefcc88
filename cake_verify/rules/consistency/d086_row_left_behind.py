"""D086: where rows of a state move on, all rows that are read do."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.sites import Site, covered, sites, stores_by_tensor
from cake_verify.analyses.trips import canonical, resolver_of
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_STATE = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def step(lm, X: LM.gmem2d[LM.f32, "B", "D"], STATE: LM.gmem3d[LM.f32, "B", 3, "D"], Y: LM.gmem2d[LM.f32, "B", "D"], B: LM.i32, D: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(D % 128 == 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(D // 128, B), names=("d", "b"))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.d * 128, t.b), shape=(128,))
            a = lm.load(STATE, coords=(t.d * 128, 0, t.b), shape=(128,))
            b = lm.load(STATE, coords=(t.d * 128, 1, t.b), shape=(128,))
            c = lm.load(STATE, coords=(t.d * 128, 2, t.b), shape=(128,))
            lm.store(Y, a + b + c + x, coords=(t.d * 128, t.b))
            lm.store(STATE, b, coords=(t.d * 128, 0, t.b))
            lm.store(STATE, c, coords=(t.d * 128, 1, t.b))
            lm.store(STATE, x, coords=(t.d * 128, 2, t.b))
'''

PAGE = Page(
    code="D086",
    title="a row of a state left behind",
    statement="Where a tile reads three rows or more of a tensor side by side and stores rows that it has read one place, or several, further on in the same tensor, it stores to every row that it has read.",
    why="The window of a convolution moves on by a token: a row that is left out keeps what belongs one place further, and every later step adds up the same token twice.",
    failing=edit(_STATE, ("            lm.store(STATE, b, coords=(t.d * 128, 0, t.b))\n", "")),
    passing=_STATE,
    limits="Decided where nothing else writes the tensor, rows are numbers and follow each other, stores and loads stand in one body, and all rows that move do so by as many places. Two rows, of which one is a copy of the other, may be meant.",
)

_LEAST = 3
"""Rows from which on a tensor is a window that moves on."""


def check(program: Program) -> Iterator[Fault]:
    for stores in stores_by_tensor(program):
        name = stores[0].op.attrs["tensor"]
        if len(stores) < 2 or any([s.op.name != "store" or s.path != stores[0].path or s.role is not stores[0].role for s in stores]):
            continue
        loads = [s for s in sites(program).of("load") if s.op.attrs.get("tensor") == name and s.path == stores[0].path and s.role is stores[0].role]
        if len(loads) < _LEAST or any([s.op.attrs.get("tensor") == name for s in sites(program).of("atomic")]):
            continue
        fault = _left(program, str(name), loads, stores)
        if fault is not None:
            yield fault


def _left(program: Program, name: str, loads: list[Site], stores: tuple[Site, ...]) -> Fault | None:
    at = [_place(program, s) for s in (*loads, *stores)]
    axes = [k for k, entry in enumerate(at[0]) if all([isinstance(p[k], int) for p in at]) and any([p[k] != entry for p in at])]  # of one tensor: as many entries
    if len(axes) != 1:
        return None
    (axis,) = axes
    if len({str([e for k, e in enumerate(p) if k != axis]) for p in at}) != 1 or any([covered(s.op, axis) != 1 for s in (*loads, *stores)]):
        return None
    rows = [int(str(p[axis])) for p in at]
    read, written = rows[: len(loads)], rows[len(loads) :]
    row_of = {t: row for s, row in zip(loads, read, strict=True) for t in s.targets}
    moved = {row_of[n] - row for s, row in zip(stores, written, strict=True) if (n := _name(s)) in row_of}
    left = sorted(set(read) - set(written))
    if len(moved) != 1 or 0 in moved or not left or len(set(read)) < _LEAST or max(read) - min(read) != len(set(read)) - 1:
        return None
    (by,) = moved
    first = next(s for s, row in zip(stores, written, strict=True) if (n := _name(s)) in row_of and row_of[n] - row == by)
    message = f"rows of `{name}` that are read move on by {abs(by)}, and nothing is stored to row {left[0]}, which is read beside them"
    return Fault("D086", message, first.op.span, ((loads[read.index(left[0])].op.span, f"row {left[0]} is read here"),), f"store to row {left[0]}, too", (), {"role": first.role.name, "tensor": name, "row": left[0]})


def _place(program: Program, s: Site) -> list[object]:
    """The coordinates of an access: whole numbers as they are, all others as text."""
    resolve = resolver_of(program, s.role.name)
    out: list[object] = []
    coords = s.op.operands.get("coords")
    for e in coords if isinstance(coords, tuple) else ():
        r = e if isinstance(e.type, FragT) else resolve(e)
        value = r.attrs.get("value") if r.op == "const" else None
        out.append(value if isinstance(value, int) else canonical(r))
    return out


def _name(s: Site) -> str:
    """The name that a store takes its value from, converted or not; empty where it computes one."""
    e = s.op.operands.get("x")
    while isinstance(e, Expr) and e.op == "cast":
        e = e.args[0]
    return str(e.attrs["name"]) if isinstance(e, Expr) and e.op == "var" else ""
