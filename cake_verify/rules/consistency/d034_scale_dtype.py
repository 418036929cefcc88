"""D034: values are scaled for the type that they are cast to."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_verify.analyses.sites import Site, sites
from cake_verify.rule import Page

_QUANTISED = '''
@cake.schedule(target="sm_90a")
def quantise(lm, X: LM.gmem2d[LM.bf16, "R", 1024], Q: LM.gmem2d[LM.e5m2, "R", 1024], S: LM.gmem2d[LM.f32, "R", 8], R: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="static", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(1, 1024), form="vec")
            s = lm.amax_scale(x, axis=1, block=128, dtype=lm.e5m2)
            lm.store(Q, lm.cast(lm.cast(x, lm.f32) * lm.rcp(s), lm.e5m2), coords=(0, t.r))
            lm.store(S, s, coords=(0, t.r))
'''

PAGE = Page(
    code="D034",
    title="a scale made for another type",
    statement="What is multiplied with the reciprocal of a scale from `lm.amax_scale(.., dtype=T)` is cast to T.",
    why="The scale brings the largest value to the largest number of its type. Cast to a narrower one most values saturate, and to a wider one its range is wasted.",
    failing=_QUANTISED.replace(", dtype=lm.e5m2)\n", ")\n"),
    passing=_QUANTISED,
    limits="Seen where the scale's name, or what was computed from it in one place, occurs in the expression that is cast.",
)


def check(program: Program) -> Iterator[Fault]:
    if "amax_scale" not in mentions(program):
        return
    made: dict[tuple[str, str], tuple[str, Site]] = {}
    for s in sites(program).ops:
        value = s.op.operands.get("value")
        if not isinstance(value, Expr):
            continue
        for name in s.targets:
            found = next((n for n in value.parts() if n.op == "amax_scale"), None)
            if found is not None:
                made[s.role.name, name] = str(found.attrs["dtype"]), s
            elif value.op in ("rcp", "cast", "var"):
                inherited = _scale(made, s.role.name, value)
                if inherited is not None:
                    made[s.role.name, name] = inherited
    for s in sites(program).ops:
        for operand in s.op.operands.values():
            for n in operand.parts() if isinstance(operand, Expr) else ():
                to = str(getattr(n.type, "dtype", "")) if n.op == "cast" else ""
                found = _scale(made, s.role.name, n.args[0]) if to in DTYPES and DTYPES[to].bits == 8 and DTYPES[to].kind == "float" and to != "ue8m0" else None
                if found is not None and found[0] != to:
                    meant, at = found
                    span = next((x.span for x in at.op.operands["value"].parts() if x.op == "amax_scale"), at.op.span)  # type: ignore[union-attr]  # an expression, above
                    yield Fault("D034", f"this value is scaled to the range of {meant} and cast to {to}", n.span, ((span, f"the scale is made for {meant}"),),
                                f"make the scale for what is stored: `lm.amax_scale(.., dtype=lm.{to})`", (), {"expected": to, "found": meant})  # fmt: skip
                    return


def _scale(made: dict[tuple[str, str], tuple[str, Site]], role: str, e: Expr) -> tuple[str, Site] | None:
    """The scale whose name occurs in an expression."""
    return next((made[role, str(n.attrs["name"])] for n in e.parts() if n.op == "var" and (role, str(n.attrs["name"])) in made), None)
