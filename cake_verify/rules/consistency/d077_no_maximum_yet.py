"""D077: a member whose tiles all lie behind the length has no maximum to subtract."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import conjuncts
from cake_ir.fault import Fault
from cake_ir.program import Expr, If, Program
from cake_ir.types import FragT
from cake_verify.analyses.running_sums import EXPONENTIALS
from cake_verify.analyses.runs import compared, defined, run_of
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import canonical, linear, resolver_of, rounded_up, spoken, written
from cake_verify.rule import Page
from cake_verify.rules.consistency.d041_moving_maximum import unscaled
from cake_verify.rules.examples import edit

_BY_WARPS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def by_warps(lm, X: LM.gmem2d[LM.f32, 64, "N"], LEN: LM.gmem1d[LM.i32, 1].const, M: LM.gmem2d[LM.f32, 4, 64], L: LM.gmem2d[LM.f32, 4, 64], N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(LEN, 1, N + 1)
    work = lm.role(warps=range(0, 16), members=4)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("one",))
    with work:
        for t in lm.tiles(sched):
            n = lm.ld(LEN, 0)
            like = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            m = lm.rowvec(like, init=-lm.inf)
            l = lm.rowvec(like, init=0.0)
            for i in lm.range(lm.cdiv(n, 256)):
                x = lm.load(X, coords=((i * 4 + work.index) * 64, 0), shape=(64, 64), form="acc", clip=True)
                z = lm.where(lm.iota(x, 1, base=(i * 4 + work.index) * 64) < n, x, -lm.inf)
                top = lm.max(m, lm.reduce(z, "max", axis=1))
                base = lm.where(top > -lm.inf, top, 0.0)
                l = l * lm.exp(m - base) + lm.sum(lm.exp(z - base), axis=1)
                m = top
            lm.store(M, m, coords=(0, work.index))
            lm.store(L, l, coords=(0, work.index))
'''

PAGE = Page(
    code="D077",
    title="no maximum yet",
    statement="Where members take turns at the tiles of a length, a member's first tile may lie behind it: until a member has met an element, its running maximum is minus infinity and is not subtracted under an exponential.",
    why="Minus infinity less minus infinity is not a number, and neither is the member's sum, nor what all members' sums are merged to. Sequences that give every member a tile hide it.",
    failing=edit(_BY_WARPS, ("base = lm.where(top > -lm.inf, top, 0.0)", "base = top + 0.0")),
    passing=_BY_WARPS,
    limits="Decided for maxima that start at minus infinity in front of a loop of `lm.cdiv(n, members * B)` rounds, over B columns from `(i * members + member) * B` on that `lm.where` masks behind n. A maximum that starts at a low number, or elements that are masked by one, have nothing to subtract wrongly; a factor that a choice takes or leaves counts as one that is right, and so does a branch that asks about the member's tile.",
)

_CHOOSES = ("where", "select")


def check(program: Program) -> Iterator[Fault]:
    if not mentions(program).keys() >= {"where", "max"} or not any(r.members > 1 for r in program.roles.values()):
        return
    for s in sites(program).of("compute"):
        e = s.op.operands.get("value")
        if s.role.members > 1 and s.loops and s.loops[-1].kind == "range" and isinstance(e, Expr) and not _asked(program, s):
            chosen = {id(m) for n in e.parts() if n.op in _CHOOSES for a in n.args[1:] for m in a.parts()}
            fault = next((f for n in e.parts() if n.op in EXPONENTIALS and id(n) not in chosen and (f := _nothing(program, s, n)) is not None), None)
            if fault is not None and not any(n.op in _CHOOSES and any(a.op == "var" and a.attrs["name"] in s.targets for a in n.args[1:]) for op in _CHOOSES for n in mentions(program).get(op, ())):
                yield fault
                return


def _asked(program: Program, s: Site) -> bool:
    """Whether a branch in the loop asks about the member's tile before anything is subtracted."""
    loop, resolve = s.loops[-1], resolver_of(program, s.role.name)
    conds = [resolve(x.cond) for x in s.path[s.path.index(loop) :] if isinstance(x, If)]
    return any(n.op == "role_index" or (n.op == "var" and n.attrs["name"] == loop.var) for c in conds for n in c.parts())


def _nothing(program: Program, s: Site, n: Expr) -> Fault | None:
    x = unscaled(n.args[0])
    older = unscaled(x.args[0]) if x.op == "sub" else x
    if x.op != "sub" or older.op != "var":
        return None
    top = unscaled(x.args[1])
    if top.op in ("add", "sub"):
        top = next((a for a in top.args if a.op == "var"), top)
    made = defined(program, s.role.name, top)
    while made.op in ("add", "sub", "mul") and any(a.op == "const" for a in made.args):
        top = next((a for a in made.args if a.op == "var"), made)
        if top is made:
            break
        made = defined(program, s.role.name, top)
    if top.op != "var" or made.op != "max" or len(made.args) != 2:
        return None
    for old, new in (made.args, made.args[::-1]):
        if old.op == "var" and old.attrs["name"] == older.attrs["name"] and new.op == "reduce" and new.attrs.get("op") == "max" and _from_nothing(program, s, old) and (end := _behind(program, s, new.args[0])) is not None:
            message = f"`{written(str(top.attrs['name']))}` is still minus infinity where all tiles of a member lie behind `{spoken(end)}`, and minus infinity less minus infinity is not a number"
            return Fault("D077", message, n.span if n.span.line else s.op.span, ((s.loops[-1].head, "every round has a tile for each member, also behind the end"),), f"subtract 0 there: `lm.where({written(str(top.attrs['name']))} > -lm.inf, .., 0.0)`", (),
                         {"role": s.role.name})  # fmt: skip
    return None


def _from_nothing(program: Program, s: Site, e: Expr) -> bool:
    """Whether a name is minus infinity in front of the loop."""
    before = [b for b in sites(program).results.get((s.role.name, str(e.attrs["name"])), ()) if s.loops[-1] not in b.loops and b.order < s.order]
    start = before[-1].op.operands.get("value") if before else None
    return isinstance(start, Expr) and start.op in ("rowvec", "colvec", "frag") and start.attrs.get("init") == -float("inf")


def _behind(program: Program, s: Site, e: Expr) -> Expr | None:
    """The length behind which the columns of a member's first tile may all lie."""
    role, loop = s.role.name, s.loops[-1]
    choice, resolve = defined(program, role, e), resolver_of(program, role)
    hi = rounded_up(resolve(loop.hi)) if loop.hi is not None and loop.lo is not None and loop.lo.op == "const" and loop.lo.attrs["value"] == 0 else None
    if choice.op != "where" or choice.args[2].attrs.get("value") != -float("inf") or hi is None or not isinstance(e.type, FragT) or hi[1] != e.type.cols * s.role.members:
        return None
    for part in conjuncts(defined(program, role, choice.args[0])):
        p = compared(program, role, part)
        run = run_of(program, role, p.args[0]) if p.op == "lt" and not isinstance(p.args[1].type, FragT) else None
        if run is None or canonical(resolve(p.args[1])) != canonical(hi[0]):
            continue
        constant, terms = linear(run[0])
        counter = terms.pop(f"?{loop.var}", 0)
        if constant == 0 and counter == hi[1] and len(terms) == 1 and next(iter(terms)).startswith("role_index") and next(iter(terms.values())) == e.type.cols:
            return p.args[1]
    return None
