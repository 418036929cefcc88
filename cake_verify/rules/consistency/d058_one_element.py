"""D058: a mask over a line of elements counts them."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import nodes
from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_ROWS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def halved(lm, X: LM.gmem2d[LM.f32, "R", "D"], n: LM.gmem1d[LM.i32, "R"], Y: LM.gmem2d[LM.f32, "R", 256], R: LM.i32, D: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(256,), clip=True)
            many = lm.ld(n, t.r)
            lm.store(Y, lm.where(lm.in_bounds(x, many, many), x * 0.5, 0.0), coords=(0, t.r))
'''

PAGE = Page(
    code="D058",
    title="a mask that lets one element through",
    statement="`lm.in_bounds(x, rows, cols)` of a fragment with one axis counts elements in both: neither is the constant 1 where there are more.",
    why="Of a line of elements both numbers speak of its only axis, so `lm.in_bounds(x, n, 1)`, one row of n or n rows of one, lets element 0 through and nothing else.",
    failing=edit(_ROWS, ("lm.in_bounds(x, many, many)", "lm.in_bounds(x, many, 1)")),
    passing=_ROWS,
    limits="Told of the constant 1 beside a number that is none, for fragments of more than one element.",
)


def check(program: Program) -> Iterator[Fault]:
    if "in_bounds" not in mentions(program):
        return
    told: set[int] = set()
    of_op = nodes(program)
    for s in sites(program).ops:
        for n in of_op[s.op.id]:
            t = n.args[0].type if n.op == "in_bounds" else None
            if not isinstance(t, FragT) or t.rank != 1 or t.rows * t.cols == 1 or id(n) in told:
                continue
            one = [a.op == "const" and a.attrs.get("value") == 1 for a in n.args[1:3]]
            if one[0] == one[1]:
                continue
            told.add(id(n))
            count, single = (n.args[1], n.args[2]) if one[1] else (n.args[2], n.args[1])
            fixes = (edits.replace(single.span, spoken(count)),) if single.span.line and single.span.line == single.span.end_line else ()
            yield Fault("D058", f"this mask lets element 0 of {t.rows * t.cols} through and no other: of a fragment with one axis both numbers count its elements", n.span if n.span.line else s.op.span, (),
                        "give both the count, or compare `lm.iota(x, 0)` with it", fixes, {"role": s.role.name, "found": 1})  # fmt: skip
