"""Q031: a tile that a branch leaves out is one that its mask would leave out."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import conjuncts
from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, If, Program
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.analyses.runs import at_least, compared, run_of
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import resolver_of, spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SUM = '''
@cake.schedule(target="sm_90a")
def sum_up_to(lm, X: LM.gmem2d[LM.f32, "R", 512], last: LM.gmem1d[LM.i32, "R"], OUT: LM.gmem1d[LM.f32, "R"], R: LM.i32):
    """The sum of each row's elements up to its last one."""
    lm.launch(grid="tiles")
    lm.assume_values(last, 0, 512)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            n = lm.ld(last, t.r)
            total = lm.frag(shape=(64,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(8):
                if i * 64 <= n:
                    x = lm.load(X, coords=(i * 64, t.r), shape=(64,), form="vec", like=total)
                    total = total + lm.where(lm.iota(x, 0, base=i * 64) <= n, x, 0.0)
            lm.store(OUT, lm.reduce(total, "add", axis=None), coords=(t.r,))
'''

PAGE = Page(
    code="Q031",
    title="a tile is skipped of which its mask lets an element through",
    statement="A branch that leaves out tiles compares their first (or last) position with the same number as the mask in it, and leaves out no tile of which that mask would let exactly one row or column through.",
    why="With `<` for `<=` the tile that starts at the last position is skipped, and one token in 64 loses the key that it may look at.",
    failing=edit(_SUM, ("if i * 64 <= n:", "if i * 64 < n:")),
    passing=_SUM,
    limits="Branches by `<` or `>` that are one step too strict for a mask below them, where both are sums of the same terms. A branch that leaves out more is taken for a division into parts that are handled elsewhere, one that leaves out less costs time only.",
)

_COMPARED = ("lt", "le", "gt", "ge")
_LOOSER = {"lt": "<=", "gt": ">="}


def check(program: Program) -> Iterator[Fault]:
    said = mentions(program)
    if "iota" not in said or "where" not in said:
        return
    told: set[int] = set()
    for s in sites(program).ops:
        guards = [(p, c) for p, arm in s.branches() if arm for c in conjuncts(p.cond) if c.op in _LOOSER and id(c) not in told]
        value = s.op.operands.get("value") if guards else None
        for m in value.parts() if isinstance(value, Expr) else ():
            for mask in conjuncts(m.args[0]) if m.op == "where" else ():
                needed = _needed(program, s, mask)
                for p, c in guards if needed is not None else ():
                    if id(c) not in told and needed is not None and _one_too_strict(program, s, c, needed):
                        told.add(id(c))
                        yield _fault(program, s, p, c, mask)


def _needed(program: Program, s: Site, mask: Expr) -> tuple[int, dict[str, int]] | None:
    """What a sum of terms is at least wherever a mask lets some element through: the number and the terms."""
    role = s.role.name
    m = compared(program, role, mask)
    if m.op not in _COMPARED:
        return None
    low = m.op in ("lt", "le")  # the first position on the left, the last on the right; the other way round otherwise
    ends: list[Expr] = []
    for e, last in zip(m.args, (not low, low), strict=True):
        run = run_of(program, role, e) if isinstance(e.type, FragT) else (resolver_of(program, role)(e), 1)
        if run is None:
            return None
        ends.append(Expr("add", (run[0], Expr("const", (), {"value": run[1] - 1}))) if last else run[0])
    return at_least(m.op, ends[0], ends[1])


def _one_too_strict(program: Program, s: Site, c: Expr, needed: tuple[int, dict[str, int]]) -> bool:
    a, b = (resolver_of(program, s.role.name)(x) for x in c.args)
    if isinstance(a.type, FragT) or isinstance(b.type, FragT):
        return False
    least, terms = at_least(c.op, a, b)
    return bool(terms) and terms == needed[1] and least == needed[0] + 1


def _fault(program: Program, s: Site, branch: If, c: Expr, mask: Expr) -> Fault:
    fixes: tuple[Fix, ...] = ()
    if c.span.line and c.span.line == c.span.end_line:
        fixes = (edits.replace(c.span, f"{spoken(c.args[0])} {_LOOSER[c.op]} {spoken(c.args[1])}"),)
    where = (mask.span, "lets an element of it through") if mask.span.line else (s.op.span, "masked here")
    return Fault("Q031", f"`{spoken(c)}` skips a tile of which the mask would let an element through", c.span if c.span.line else branch.head, (where,),
                 "let the branch through wherever the mask lets something through", fixes, {"role": s.role.name})  # fmt: skip
