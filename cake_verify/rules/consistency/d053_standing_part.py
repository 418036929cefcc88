"""D053: a loop over the parts of shared memory reads the part of its round everywhere."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault, Fix
from cake_ir.program import Assign, Expr, For, Program, statements
from cake_ir.record import record
from cake_ir.span import Span
from cake_ir.types import ViewT
from cake_verify.analyses import edits
from cake_verify.analyses.affine import steps
from cake_verify.analyses.sites import Site, constant_rounds, sites
from cake_verify.analyses.trips import resolver_of, spoken, written
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_MERGED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def merged(lm, X: LM.gmem2d[LM.f32, "R", 256], G: LM.gmem2d[LM.f32, "R", 256], Y: LM.gmem2d[LM.f32, "R", 64], R: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(2048)
    parts = pool.view(offset=0, shape=(4, 64), dtype=lm.f32)
    gates = pool.view(offset=1024, shape=(4, 64), dtype=lm.f32)
    work = lm.role(warps=range(0, 4), members=4)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            parts.rows(work.index, 1).store(lm.load(X, coords=(64 * work.index, t.r), shape=(64,)))
            gates.rows(work.index, 1).store(lm.load(G, coords=(64 * work.index, t.r), shape=(64,)))
            lm.sync(meet)
            if work.index == 0:
                sums = lm.frag(shape=(64,), dtype=lm.f32, form="vec", init=0.0)
                most = lm.frag(shape=(64,), dtype=lm.f32, form="vec", init=0.0)
                for j in lm.static_range(4):
                    g = gates.rows(j, 1).load(form="vec", like=sums)
                    most = lm.max(most, g)
                for j in lm.static_range(4):
                    g = gates.rows(j, 1).load(form="vec", like=sums)
                    sums = sums + parts.rows(j, 1).load(form="vec", like=sums) * lm.exp(g - most)
                lm.store(Y, sums, coords=(0, t.r))
            lm.sync(meet)
'''

PAGE = Page(
    code="D053",
    title="a part that stands still in a loop over parts",
    statement="Where a loop has a round for each of the parts of shared memory that members or CTAs have left side by side, what it reads of them moves with the round.",
    why="One factor, maximum or sum of one member is combined with the parts of all of them: right for the first part, and for a test in which all parts are alike.",
    failing=edit(_MERGED, ("""                    g = gates.rows(j, 1).load(form="vec", like=sums)
                    sums""", """                    g = gates.rows(0, 1).load(form="vec", like=sums)
                    sums""")),
    passing=_MERGED,
    limits="Decided where another read of the loop moves by one part a round, there are as many rounds as parts, and the part that stands still is read in the loop, of another view or in another way, and written by members or ranks side by side.",
)  # fmt: skip


@record(eq=False)
class _Part:
    """One read of a part of a view: along which axis, where it starts, how long it is and how long the view is there; `plain` where nothing but that part is cut from it."""

    site: Site
    view: str
    axis: str
    start: Expr
    span: Span
    size: int
    whole: int
    plain: bool = False


def check(program: Program) -> Iterator[Fault]:
    reads: dict[int, list[Site]] = {}
    for s in sites(program).of("load", "ldmatrix", "ld"):
        if "view" in s.op.operands and s.loops and s.loops[-1].kind != "tiles" and (constant_rounds(s.loops[-1]) or 0) > 1:
            reads.setdefault(id(s.loops[-1]), []).append(s)
    for found in reads.values():
        if len(found) > 1 and (fault := _loop(program, found)) is not None:
            yield fault


def _loop(program: Program, reads: list[Site]) -> Fault | None:
    """The read of a loop that stands still beside one that moves by a part a round."""
    loop, role = reads[0].loops[-1], reads[0].role.name
    parts = [p for s in reads if (p := _part(program, s)) is not None]
    rounds = constant_rounds(loop)
    moving = [p for p in parts if steps(program, role, p.start).get(loop.var) == p.size and p.whole == p.size * (rounds or 0)]
    if not moving or len(moving) == len(parts):
        return None
    bound = {loop.var, *(t for s in statements(loop.body) if isinstance(s, Assign) for t in s.targets)}
    resolve = resolver_of(program, role)
    for p in parts:
        if p in moving or p.whole != p.size * (rounds or 0) or any(n.op == "role_index" or (n.op == "var" and n.attrs["name"] in bound) for n in resolve(p.start).parts()):
            continue
        if not any((m.view, m.axis) == (p.view, p.axis) for m in moving) and _side_by_side(program, p):  # parts of one view may be compared with one of them
            return _fault(p, moving[0], loop)
    return None


def _part(program: Program, s: Site) -> _Part | None:
    """The part that a read takes, cut once or chosen by the number of an element."""
    e, i = s.op.operands["view"], s.op.operands.get("i")
    span = s.op.spans.get("view", s.op.span)
    cut: Expr | None = None
    while isinstance(e, Expr) and e.args:
        if e.op in ("rows", "cols"):
            if cut is not None:
                return None
            cut = e
        e = e.args[0]
    if not isinstance(e, Expr) or e.op != "view" or not isinstance(e.type, ViewT):
        return None
    if isinstance(i, Expr):
        rounds = constant_rounds(s.loops[-1]) or 1
        whole = e.type.rows * e.type.cols
        return _Part(s, str(e.attrs["view"]), "element", i, s.op.spans.get("i", s.op.span), whole // rounds, whole) if cut is None and whole % rounds == 0 else None
    if cut is None:
        return None
    size, whole = int(cut.attrs["n"]), e.type.rows if cut.op == "rows" else e.type.cols  # type: ignore[call-overload]  # a number of rows
    return _Part(s, str(e.attrs["view"]), cut.op, cut.args[1], cut.span if cut.span.line else span, size, whole, cut is s.op.operands["view"] and cut.args[0] is e)


def _side_by_side(program: Program, p: _Part) -> bool:
    """Whether members or ranks write the parts of a view, each its own."""
    for s in sites(program).of("store", "send"):
        e = s.op.operands.get("view")
        cut: Expr | None = None
        while isinstance(e, Expr) and e.args:
            cut = e if e.op in ("rows", "cols") else cut
            e = e.args[0]
        if cut is None or not isinstance(e, Expr) or e.op != "view" or str(e.attrs["view"]) != p.view:
            continue
        if any(n.op in ("role_index", "cta_rank", "field") for n in resolver_of(program, s.role.name)(cut.args[1]).parts()):
            return True
    return False


def _fault(p: _Part, other: _Part, loop: For) -> Fault:
    s, var = p.site, written(loop.var)
    message = f"{call(s.op)} reads the part at `{spoken(p.start)}` in every round of `{var}`, and {call(other.site.op)} beside it the part of the round"
    fixes: tuple[Fix, ...] = ()
    if p.size == other.size and p.span.line and p.axis == other.axis and p.plain:
        fixes = (edits.replace(p.span, f"{p.view}.{p.axis}({spoken(other.start)}, {p.size})"),)
    return Fault("D053", message, p.span, ((other.span, "this moves with the round"), (loop.head, f"`{var}` counts the parts")), f"take the part of the round: `{spoken(other.start)}`", fixes,
                 {"role": s.role.name, "view": p.view})  # fmt: skip
