"""Q036: a loop that brings tiles ahead has a round for each of them."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.structure import TURNED, conjuncts
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_ir.types import ViewT
from cake_verify.analyses import edits
from cake_verify.analyses.sites import VIEW_COPIES, Site, names_view, on_view, sites
from cake_verify.analyses.trips import canonical, linear, resolver_of, spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_AHEAD = '''
@cake.schedule(target=("sm_80", "sm_89"))
def ahead(lm, A: LM.gmem2d[LM.bf16, "R", 64], B: LM.gmem2d[LM.bf16, "R", 64], LIST: LM.gmem1d[LM.i32, "L"], COUNT: LM.gmem1d[LM.i32, "T"], Y: LM.gmem3d[LM.f32, "T", 64, 64], R: LM.i32, L: LM.i32, T: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(L == T * 16)
    lm.assume_values(LIST, 0, R // 64)
    lm.assume_values(COUNT, 1, 17)
    pool = lm.smem(4 * 8192)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    all_ = lm.named_barrier(work)
    ring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            n = lm.ld(COUNT, t.t)
            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            s = lm.step(ring)
            at = lm.ld(LIST, t.t * 16) * 64
            a.cp_async(A, coords=(0, at), stage=s)
            b.cp_async(B, coords=(0, at), stage=s)
            lm.cp_commit()
            for i in lm.range(n):
                s = lm.step(ring)
                if i + 1 < n:
                    at = lm.ld(LIST, t.t * 16 + i + 1) * 64
                    a.cp_async(A, coords=(0, at), stage=s)
                    b.cp_async(B, coords=(0, at), stage=s)
                lm.cp_commit()
                lm.cp_wait(pending=1)
                lm.sync(all_)
                lm.mma(acc, a[s.prev()].ldmatrix(form="a"), b[s.prev()].ldmatrix(form="b"))
                lm.sync(all_)
            lm.cp_wait(pending=0)
            lm.store(Y, acc, coords=(0, 0, t.t))
'''

PAGE = Page(
    code="Q036",
    title="a tile that is brought for no round",
    statement="A loop that brings tiles some rounds ahead, and stops bringing them before a bound (`if i + 1 < n:`), goes on to that bound itself, unless what is left is used behind it.",
    why="The guard says how many tiles there are. Where the loop has fewer rounds, the last tile is fetched and never used, and every sum lacks it.",
    failing=edit(_AHEAD, ("lm.range(n)", "lm.range(n - 1)")),
    passing=_AHEAD,
    limits="Decided for copies into shared memory of which the loop itself reads one slot a round, under comparisons of the loop's variable and a number that is added to it with a bound from which the loop's own takes a number off, where nothing behind the loop reads what was brought. A guard that lets a tile more through than the loop has rounds costs a copy only.",
)
YIELDS = True


def check(program: Program) -> Iterator[Fault]:
    told: set[int] = set()
    for s in sites(program).of(*VIEW_COPIES):
        loop = s.loops[-1] if s.loops and s.path[-1] is not s.loops[-1] else None
        if loop is None or loop.kind == "tiles" or loop.hi is None or id(loop) in told:
            continue
        for c in _guards(s, loop):
            found = _bound(program, s, loop, c)
            if found is None:
                continue
            end, missing = found
            if missing > 0 and _used_in(program, s, loop) and not _used_behind(program, s, loop):
                told.add(id(loop))
                rounds = f"{missing} round{'s' if missing > 1 else ''}"
                message = f"this loop ends {rounds} before what it brings does: `{spoken(c)}` looks ahead as far as `{spoken(end)}`, and nothing uses the last of it"
                fixes = (edits.replace(loop.hi.span, spoken(end)),) if loop.hi.span.line else ()
                yield Fault("Q036", message, loop.head, ((c.span if c.span.line else s.op.span, "brought ahead under this condition"),), "go on to the last tile", fixes, {"role": s.role.name, "missing": missing})
                break


def _guards(s: Site, loop: For) -> list[Expr]:
    """The comparisons under which a copy is made in a loop."""
    inside = s.path[s.path.index(loop) :]
    return [c for p, arm in s.branches() if arm and p in inside for c in conjuncts(p.cond) if c.op in ("lt", "gt", "le", "ge")]


def _bound(program: Program, s: Site, loop: For, c: Expr) -> tuple[Expr, int] | None:
    """What a comparison keeps the rounds ahead below, and by how many rounds the loop ends before that."""
    (left, right), op = c.args, c.op
    if op in ("gt", "ge"):
        left, right, op = right, left, TURNED[op]
    resolve = resolver_of(program, s.role.name)
    ahead, terms = linear(resolve(left))
    if ahead < 1 or terms != {f"?{loop.var}": 1} or loop.hi is None:
        return None
    (end, names), (hi, mine) = linear(resolve(right)), linear(resolve(loop.hi))
    end += op == "le"
    return (right, end - hi) if names == mine and names and hi < 0 and abs(end) < -hi else None


def _reads(x: Site, view: str) -> bool:
    """Whether an operation reads a view: it is no copy into it, and names it."""
    return x.op.name not in VIEW_COPIES and names_view(x.op, view)


def _used_in(program: Program, s: Site, loop: For) -> bool:
    """Whether a loop reads one slot of what was brought in each round: who reads two has one round less than tiles."""
    slots: set[str] = set()
    for x in sites(program).of_role(s.role.name):
        if loop in x.loops and _reads(x, on_view(s.op)):
            found = [canonical(n.args[1]) for e in x.op.operands.values() if isinstance(e, Expr) for n in e.parts() if n.op == "stage" and isinstance(n.args[0].type, ViewT) and n.args[0].type.view == on_view(s.op)]
            slots.update(found or [""])
    return len(slots) == 1


def _used_behind(program: Program, s: Site, loop: For) -> bool:
    """Whether something that stands behind the loop, in what it stands in, reads what was brought."""
    around = s.path[: s.path.index(loop)]
    last = max(x.order for x in sites(program).of_role(s.role.name) if loop in x.loops)
    return any(x.order > last and x.path[: len(around)] == around and _reads(x, on_view(s.op)) for x in sites(program).of_role(s.role.name))
