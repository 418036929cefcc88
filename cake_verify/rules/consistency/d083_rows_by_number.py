"""D083: rows that are gathered by consecutive numbers follow the tile that they are stored for."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT, ViewT
from cake_verify.analyses.operand_places import placed_by
from cake_verify.analyses.runs import run_of
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import linear, resolver_of
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SHIFTED = '''
@cake.schedule(target=("sm_80", "sm_89"))
def shifted(lm, X: LM.gmem2d[LM.bf16, "T", 64], W: LM.gmem2d[LM.bf16, 64, 64], Y: LM.gmem2d[LM.f32, "T", 64], T: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(16384)
    x = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    w = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            x.cp_async_rows(X, rows=lm.iota(acc, axis=0, base=t.m * 64 - 1), coords=(0, 0))
            w.cp_async(W, coords=(0, 0))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(own)
            lm.mma(acc, x.ldmatrix(form="a"), w.ldmatrix(form="b"), init=True)
            lm.store(Y, acc, coords=(0, t.m * 64), clip=True)
'''

PAGE = Page(
    code="D083",
    title="rows by number that stand still",
    statement="Where rows are gathered by consecutive numbers (`base + lm.iota(x, 0)`) along an axis, multiplied with what is the same for all tiles, and the product's rows are stored along an axis of the same name tile by tile, the numbers follow the tile, too.",
    why="Without the tile's place every tile multiplies the first rows: right for one tile, and for tests of one.",
    failing=edit(_SHIFTED, ("base=t.m * 64 - 1", "base=0 - 1")),
    passing=_SHIFTED,
    limits="Decided for rows that shared memory brings to operand `a` of a product in registers whose accumulator the same role stores, numbers that depend on no field of the tile and on nothing that memory holds, and an operand `b` that the field which places the rows does not move either: the same rows may meet another matrix in every tile.",
)


def check(program: Program) -> Iterator[Fault]:
    for s in sites(program).of("cp_async_rows"):
        rows, tensor, view = s.op.operands.get("rows"), program.tensors.get(str(s.op.attrs.get("tensor"))), s.op.operands.get("view")
        if not isinstance(rows, Expr) or not isinstance(rows.type, FragT) or tensor is None or not tensor.axes or not isinstance(tensor.axes[0], str) or not isinstance(view, Expr) or not isinstance(view.type, ViewT):
            continue
        first = _first(program, s, rows)
        coords = s.op.operands.get("coords")
        if first is None or not isinstance(coords, tuple) or any(n.op in ("field", "ld") for e in (first, resolver_of(program, s.role.name)(coords[-1])) for n in e.parts()):
            continue
        store = next((y for y in sites(program).of("store") if y.role is s.role and _stored(program, y, view.type.view, tensor.axes[0])), None)
        if store is not None:
            message = f"{call(s.op)} gathers the same rows of `{tensor.name}` for every tile, and what is made of them is stored along `{tensor.axes[0]}` of `{store.op.attrs['tensor']}` tile by tile"
            yield Fault("D083", message, s.op.spans.get("rows", s.op.span), ((store.op.span, "stored here"),), "count from where the tile starts: `lm.iota(x, 0, base=..)`", (), {"role": s.role.name, "tensor": tensor.name})
            return


def _first(program: Program, s: Site, rows: Expr) -> Expr | None:
    """The first of consecutive numbers, as the name that holds them was bound last."""
    if rows.op == "var":
        bound = [b for b in sites(program).results.get((s.role.name, str(rows.attrs["name"])), ()) if b.order < s.order]
        value = bound[-1].op.operands.get("value") if bound else None
        if not isinstance(value, Expr):
            return None
        rows = value
    run = run_of(program, s.role.name, rows)
    return None if run is None else run[0]


def _stored(program: Program, y: Site, view: str, axis: str) -> bool:
    """Whether a store puts the rows of a product of a view's rows along an axis of that name, by a field of the tile."""
    coords, tensor, x = y.op.operands.get("coords"), program.tensors.get(str(y.op.attrs.get("tensor"))), y.op.operands.get("x")
    if not isinstance(coords, tuple) or tensor is None or len(tensor.axes) != len(coords) or len(coords) < 2 or not isinstance(x, Expr) or tensor.axes[-2] != axis:
        return False
    moved = {t for t in linear(resolver_of(program, y.role.name)(coords[1]))[1] if t.startswith("tile.")}
    if any(isinstance(c.type, FragT) for c in coords) or not moved:
        return False
    names = {str(n.attrs["name"]) for n in x.parts() if n.op == "var"}
    for m in sites(program).of("mma"):
        acc, a, b = m.op.operands["acc"], m.op.operands["a"], m.op.operands["b"]
        if m.role is y.role and isinstance(acc, Expr) and acc.op == "var" and str(acc.attrs["name"]) in names and isinstance(a, Expr) and view in _views(program, m, a):
            placed = placed_by(program, m.role.name, b) if isinstance(b, Expr) else None
            return placed is not None and placed.isdisjoint({"memory", *moved})
    return False


def _views(program: Program, m: Site, a: Expr) -> set[str]:
    """The views that an operand is, or was loaded from."""
    found = {str(n.attrs["view"]) for n in a.parts() if n.op == "view"}
    if a.op == "var":
        for b in sites(program).results.get((m.role.name, str(a.attrs["name"])), ()):
            view = b.op.operands.get("view")
            if isinstance(view, Expr) and isinstance(view.type, ViewT) and not view.type.transposed:
                found.add(view.type.view)
    return found
