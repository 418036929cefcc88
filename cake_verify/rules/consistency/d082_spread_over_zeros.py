"""D082: a number that is spread over a tile to be handed on, or to start a maximum, is spread over zeros."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT, ScalarT
from cake_verify.analyses.running_sums import STARTS, number_of
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SINK = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def largest(lm, X: LM.gmem2d[LM.f32, 64, "N"], SINK: LM.gmem1d[LM.f32, 1], Y: LM.gmem1d[LM.f32, 64], N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 64 == 0)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("x",))
    with work:
        for t in lm.tiles(sched):
            x = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            m = lm.rowvec(x, init=0.0) + lm.ld(SINK, 0)
            for i in lm.range(N // 64):
                x = lm.load(X, coords=(i * 64, 0), shape=(64, 64), form="acc", like=x)
                m = lm.max(m, lm.reduce(x, "max", axis=1))
            lm.store(Y, m, coords=(0,))
'''

PAGE = Page(
    code="D082",
    title="a number spread over another one",
    statement="A tile or vector that is made to hold one number in every element (`lm.rowvec(x, init=0.0) + n`), and that a loop's maximum starts from or another CTA is sent, is made of zeros.",
    why="What it is made of is added to the number. A maximum that starts at an element and one more is the maximum of nothing, and each part that is sent is too large by it.",
    failing=edit(_SINK, ("init=0.0) + lm.ld", "init=1.0) + lm.ld")),
    passing=_SINK,
    limits="Sums of a constant tile with a number that is read or reduced, where nothing else changes them before they are sent, or before the loop that takes `lm.max` (or `lm.min`) with them. Others may be meant: `1 + d` is a kernel's own form, and a bound that every round compares with (`lm.max(margin, x)`) is no start.",
)


def check(program: Program) -> Iterator[Fault]:
    said = mentions(program)
    if not any(number_of(n) is not None for op in STARTS for n in said.get(op, ())):
        return
    for s in sites(program).of("compute"):
        e = s.op.operands["value"]
        if not isinstance(e, Expr) or e.op != "add" or not s.targets:
            continue
        for a, x in (e.args, e.args[::-1]):
            start = number_of(a) if a.op in STARTS else None
            if start is None or not (isinstance(x.type, ScalarT) or (isinstance(x.type, FragT) and x.type.form == "scalar")) or x.op in ("const", "param"):
                continue
            use = _use(program, s)
            if use is not None:
                name = s.targets[0]
                what = "is sent" if use.op.name == "send" else "a maximum or minimum starts from that"
                yield Fault("D082", f"`{written(name)}` holds a number and {start} more in every element, and {what}", s.op.span, ((use.op.span, "used here"),), "start from zeros", (), {"role": s.role.name, "name": name})
                return


def _use(program: Program, s: Site) -> Site | None:
    """What sends a place as it is, or takes the maximum or minimum of it and something else in a loop behind it."""
    name, found = s.targets[0], sites(program)
    bound = found.results.get((s.role.name, name), ())
    for o in found.of_role(s.role.name):
        if o.order <= s.order:
            continue
        x, value = o.op.operands.get("x"), o.op.operands.get("value")
        if o.op.name == "send" and len(bound) == 1 and isinstance(x, Expr) and x.op == "var" and x.attrs["name"] == name:
            return o
        if len(o.loops) > len(s.loops) and isinstance(value, Expr) and any(n.op in ("max", "min") and any(a.op == "var" and a.attrs["name"] == name for a in n.args) for n in value.parts()):
            here = o.loops[len(s.loops)]
            return o if any(here in b.loops for b in bound) and not any(s.order < b.order and b.loops == s.loops for b in bound) else None
    return None
