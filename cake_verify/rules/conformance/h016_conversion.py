"""H016: dtype conversions that the target has."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.dtypes import cast_on
from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="H016",
    title="a conversion that the target does not have",
    statement="`lm.cast` converts between dtypes, with a rounding mode, for which the target has instructions.",
    why="fp8 conversions start at sm_89, fp6, fp4 and those to ue8m0 at sm_100a; stochastic rounding exists on sm_100a and sm_103a. There is no fallback in software.",
    failing=edit(COPY, ('target="sm_90a"', 'target="sm_80"'), ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.e4m3]"), ("lm.store(Y, x,", "lm.store(Y, lm.cast(x, lm.e4m3),")),
    passing=edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.e4m3]"), ("lm.store(Y, x,", "lm.store(Y, lm.cast(x, lm.e4m3),")),
    sources=("HW103",),
)


def check(program: Program) -> Iterator[Fault]:
    if not program.target:
        return
    for node in mentions(program).get("cast", ()):
        src, dst = getattr(node.args[0].type, "dtype", None), getattr(node.type, "dtype", None)
        if src is None or dst is None:
            continue
        mode = node.attrs.get("round")
        answer = cast_on(src, dst, program.target, str(mode) if mode else None)
        if isinstance(answer, str):
            yield Fault("H016", answer, node.span, ((node.args[0].span, f"{src} here"),), facts={"from": src, "to": dst, "target": program.target})
