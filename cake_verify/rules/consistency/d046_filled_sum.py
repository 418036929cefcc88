"""D046: what fills a tile up behind the end of its tensor is neutral where it is reduced."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.filled_lanes import HIGH, LOW, met
from cake_verify.analyses.sites import sites
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SPREAD = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def spread(lm, X: LM.gmem2d[LM.f32, "B", "N"], Y: LM.gmem1d[LM.f32, "B"], B: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(lm.cdiv(N, 256)):
                x = lm.load(X, coords=(i * 256, t.b), shape=(256,), clip=True, fill=-lm.inf)
                total = total + lm.exp(x)
            lm.store(Y, lm.sum(total, axis=1), coords=(t.b,))
'''

PAGE = Page(
    code="D046",
    title="what fills a tile up takes part in a reduction",
    statement="Where a load with `clip` reaches past the end of its tensor, what it puts there (zero, or its `fill`) is neutral by the time a reduction along the columns meets it: zero in a sum, something low in a maximum.",
    why="Places behind the end are computed with like all others: an infinity that is right for a maximum makes a sum infinite, and a zero becomes a one under an exponential, or the square of a mean. Lengths that are multiples of the tile hide it.",
    failing=edit(_SPREAD, (", fill=-lm.inf", "")),
    passing=_SPREAD,
    limits="Followed through names and elementwise operations in text order, from loads whose columns start at multiples of the tile and whose extent is no known multiple of it. A choice (`lm.where`), other operands that are loaded, and what is not certain count as neutral; "
    "a zero wins no maximum of absolute values and squares.",
)


def check(program: Program) -> Iterator[Fault]:
    said = mentions(program)
    if not any(s.op.attrs.get("clip") for s in sites(program).of("load")) or not ("sum" in said or "reduce" in said or sites(program).of("reduce_across")):
        return
    for m in met(program):
        load, kind = m.by.site.op, {"add": "sum", "max": "maximum", "min": "minimum"}[m.kind]
        neutral = {"add": "zero", "max": "`-lm.inf`", "min": "`lm.inf`"}[m.kind]
        holds = {LOW: "a very low number", HIGH: "a very high number"}.get(m.holds, "zero, or what was made of it" if m.kind != "add" else "what was made of it")
        at = load.spans.get("coords", load.span)
        made = ((m.made, "made here"),) if m.made is not None and m.made.line != m.at.line else ()
        message = f"{call(load)} fills places behind the end of `{load.attrs['tensor']}`, and what they hold here, {holds}, is not neutral in this {kind}"
        yield Fault("D046", message, m.at, (*made, (at, f"`{m.by.extent}` is no known multiple of {load.type.cols}"),), f"choose {neutral} there first (`lm.where(lm.iota(x, 1, base=..) < {m.by.extent}, x, ..)`), by `fill=`, or state with `lm.assume` that the extent is a multiple",  # type: ignore[union-attr]  # a fragment, as of all that are followed
                    (), {"role": m.role, "reduction": m.kind})  # fmt: skip
