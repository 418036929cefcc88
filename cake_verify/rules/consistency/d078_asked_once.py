"""D078: a sum that is asked about in one place is not divided by unasked in another."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, If, Program
from cake_ir.span import Span
from cake_ir.types import FragT
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.consistency.d042_empty_sum import check as empty_sums
from cake_verify.rules.examples import edit

_WEIGHTED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def weighted(lm, X: LM.gmem3d[LM.f32, 4, "R", 256], W: LM.gmem3d[LM.f32, 4, "R", 256], Y: LM.gmem2d[LM.f32, "R", 256], L: LM.gmem2d[LM.f32, "R", 256], R: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0)
            weight = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(4):
                w = lm.load(W, coords=(0, t.r, i), shape=(256,))
                total = total + w * lm.load(X, coords=(0, t.r, i), shape=(256,))
                weight = weight + w
            lm.store(Y, lm.where(weight > 0.0, total / weight, 0.0), coords=(0, t.r))
            lm.store(L, lm.where(weight > 0.0, lm.log(weight), -lm.inf), coords=(0, t.r))
'''

PAGE = Page(
    code="D078",
    title="asked about here and divided by there",
    statement="Where a choice asks whether a sum is more than zero before one result is made of it, no other result divides by it without asking.",
    why="Either the sum can be zero, and then the other result is not a number there, or it cannot, and the choice says something else than is meant.",
    failing=edit(_WEIGHTED, ("lm.where(weight > 0.0, total / weight, 0.0)", "total / weight")),
    passing=_WEIGHTED,
    limits="Decided for vectors and tiles that are compared with zero and divided by behind the last operation that changes them, under the same conditions, where what is stored is the quotient, without a mask. Any choice around a division counts as one that is right.",
)

_DIVIDING = frozenset({"rcp", "div"})
_ASKING = frozenset({"gt", "eq", "ne", "le"})


def check(program: Program) -> Iterator[Fault]:
    said = mentions(program).keys()
    if "where" not in said or said.isdisjoint(_DIVIDING):
        return
    for s in sites(program).of("store"):
        x = s.op.operands.get("x")
        if not isinstance(x, Expr) or s.op.operands.get("mask") is not None:
            continue
        for n, name in _divided(x):
            asked = _asked(program, s, name)
            if asked is not None and not any(f.facts.get("sum") == name for f in empty_sums(program)):  # told there, with the arguments
                at = n.span if n.span.line else s.op.span
                yield Fault("D078", f"`{written(name)}` may be zero here as well: another result asks whether it is before it is made", at, ((asked, "asked here"),), f"ask here, too: `lm.where({written(name)} > 0.0, .., 0.0)`", (),
                            {"role": s.role.name, "name": name})  # fmt: skip
                return


def _divided(e: Expr) -> Iterator[tuple[Expr, str]]:
    """Divisions by a name outside of every choice."""
    waiting = [e]
    while waiting:
        n = waiting.pop()
        if n.op in ("where", "select"):
            continue
        if n.op in _DIVIDING and n.args[-1].op == "var" and isinstance(n.args[-1].type, FragT):
            yield n, str(n.args[-1].attrs["name"])
        waiting += n.args


def _asked(program: Program, s: Site, name: str) -> Span | None:
    """Where a store beside asks whether a name is zero, nothing between the two changing it."""
    last = max((b.order for b in sites(program).results.get((s.role.name, name), ())), default=-1)
    branches = [p for p in s.path if isinstance(p, If)]
    for other in sites(program).of("store"):
        x = other.op.operands.get("x")
        if other is s or other.role is not s.role or min(other.order, s.order) < last or [p for p in other.path if isinstance(p, If)] != branches or other.loops != s.loops or not isinstance(x, Expr):
            continue
        for n in x.parts():
            if n.op == "where" and n.args[0].op in _ASKING and n.args[0].args[0].op == "var" and n.args[0].args[0].attrs["name"] == name and n.args[0].args[1].op == "const" and n.args[0].args[1].attrs["value"] == 0:
                return n.span if n.span.line else other.op.span
    return None
