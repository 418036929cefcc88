"""D074: the position of a maximum is kept where the maximum is."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.runs import defined
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import spoken, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_PICK = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def pick(lm, X: LM.gmem2d[LM.f32, "R", "N"], AT: LM.gmem1d[LM.i32, "R"], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(64)
    most = pool.view(offset=0, shape=(4,), dtype=lm.f32)
    least = pool.view(offset=16, shape=(4,), dtype=lm.i32)
    work = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            best = -lm.inf
            place = 0
            for c in lm.range(lm.cdiv(N, 256)):
                x = lm.load(X, coords=(c * 256, t.r), shape=(256,), clip=True, fill=-lm.inf)
                top = lm.reduce(x, "max", across=work, scratch=most, sync=meet)
                here = lm.reduce(lm.where(x == top, lm.iota(x, 0, base=c * 256), N), "min", across=work, scratch=least, sync=meet)
                place = lm.where(top > best, here, place)
                best = lm.max(best, top)
            lm.store(AT, place, coords=(t.r,))
'''

PAGE = Page(
    code="D074",
    title="the position of a maximum that is not kept",
    statement="A position that a loop keeps where a round's maximum (or minimum) exceeds something is compared with the best of the rounds before, which the loop keeps as well, and not with a number.",
    why="Against a number every round that exceeds it wins, and the last of them stays: the position of some maximum, but not of the largest.",
    failing=edit(_PICK, ("                best = lm.max(best, top)\n", "")),
    passing=_PICK,
    limits="Decided for `place = lm.where(top > n, here, place)` where `top` is a reduction of the round and `here` one of positions that a comparison with `top` chooses.",
)

_COMPARED = frozenset({"lt", "le", "gt", "ge"})


def check(program: Program) -> Iterator[Fault]:
    if not mentions(program).keys() >= {"where", "iota"}:
        return
    for s in sites(program).of("compute"):
        e = s.op.operands.get("value")
        if not isinstance(e, Expr) or e.op != "where" or len(s.targets) != 1 or not s.loops or s.loops[-1].kind == "tiles":
            continue
        kept = [a for a in e.args[1:] if a.op == "var" and a.attrs["name"] == s.targets[0]]
        here = next((a for a in e.args[1:] if a.op == "var" and a.attrs["name"] != s.targets[0]), None)
        cond = defined(program, s.role.name, e.args[0])
        if len(kept) != 1 or here is None or cond.op not in _COMPARED or sum(a.op == "const" for a in cond.args) != 1:
            continue
        top = next(a for a in cond.args if a.op != "const")
        number = next(a for a in cond.args if a.op == "const")
        if _reduced(program, s, top) is None or not _of_positions(program, s, here, top):
            continue
        name = written(str(top.attrs["name"]))
        yield Fault("D074", f"`{written(s.targets[0])}` is kept wherever `{name}` exceeds {spoken(number)}, which is the same in every round: the last such round wins, not the best", s.op.span, ((s.loops[-1].head, "in this loop"),),
                    f"keep the best of `{name}` in the loop, too, and compare with that", (), {"role": s.role.name, "name": s.targets[0]})  # fmt: skip
        return


def _reduced(program: Program, s: Site, e: Expr) -> Expr | None:
    """What a name is a reduction of, made in the loop around."""
    bound = sites(program).results.get((s.role.name, str(e.attrs.get("name"))), ()) if e.op == "var" else ()
    if len(bound) != 1 or s.loops[-1] not in bound[0].loops:
        return None
    op = bound[0].op
    if op.name == "reduce_across":
        x = op.operands.get("x")
        return x if isinstance(x, Expr) and op.attrs.get("op") in ("max", "min") else None
    value = op.operands.get("value")
    return value.args[0] if isinstance(value, Expr) and value.op == "reduce" and value.attrs.get("op") in ("max", "min") else None


def _of_positions(program: Program, s: Site, here: Expr, top: Expr) -> bool:
    """Whether a name is the reduction of positions of elements that equal another reduction."""
    x = _reduced(program, s, here)
    if x is None or x.op != "where" or not any(isinstance(a.type, FragT) and any(n.op == "iota" for n in defined(program, s.role.name, a).parts()) for a in x.args[1:]):
        return False
    cond = defined(program, s.role.name, x.args[0])
    return any(n.op == "var" and n.attrs["name"] == top.attrs["name"] for n in cond.parts())
