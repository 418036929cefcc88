"""D070: a least element is one that was looked at."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.kept_best import bests
from cake_verify.analyses.runs import defined
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_NEAREST = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def nearest(lm, X: LM.gmem2d[LM.f32, "P", "N"], Y: LM.gmem1d[LM.f32, "P"], IDX: LM.gmem1d[LM.i32, "P"], P: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(P % 64 == 0 and N % 64 == 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(P // 64,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            d = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            y = lm.load(Y, coords=(t.m * 64,), shape=(64,), form="rowvec", like=d)
            best = (lm.rowvec(d, init=lm.inf), lm.rowvec(d, init=0))
            for k in lm.range(N // 64):
                x = lm.load(X, coords=(k * 64, t.m * 64), shape=(64, 64), form="acc")
                best = lm.argmin((x - y) * (x - y) + 0.5 * x, axis=1, base=k * 64, into=best)
            val, idx = lm.finish(best)
            lm.store(IDX, idx, coords=(t.m * 64,))
'''

PAGE = Page(
    code="D070",
    title="a minimum that starts from zero",
    statement="The least of what is computed from sums or differences, kept together with its index, starts from infinity or from an element, not from zero.",
    why="Where no element is below zero the pair stays what it started as: the index is 0 and the value 0, of an element that nobody compared. Squared distances are never below zero.",
    failing=edit(_NEAREST, ("init=lm.inf", "init=0.0")),
    passing=_NEAREST,
    limits="Decided for indices that start from a number from zero on: one that starts from a negative number says that nothing was found. Minima of what was loaded, negated or taken a logarithm of are left alone, for zero may be the largest of them, and so are maxima: probabilities are positive.",
)

_SIGNED = frozenset({"add", "sub", "fma", "abs", "sqrt", "where", "mul"})


def check(program: Program) -> Iterator[Fault]:
    if mentions(program).keys().isdisjoint(("where", "argmin")):
        return
    for b in bests(program):
        if not b.least or b.number != 0 or b.index is None or b.index < 0:
            continue
        e = defined(program, b.site.role.name, b.elements)
        if e.op not in _SIGNED or any(n.op in ("neg", "log", "log2") or (e.op == "mul" and isinstance(v := n.attrs.get("value"), (int, float)) and v < 0) for n in e.args):
            continue
        yield Fault("D070", f"`{written(b.name)}` starts from 0, and only what is less is taken: where nothing is, it is still 0 and its index still {b.index}, of an element that was not compared", b.start.op.span,
                    ((b.site.op.span, "compared here"),), "start from `lm.inf`", (), {"name": b.name, "role": b.site.role.name})  # fmt: skip
        return
