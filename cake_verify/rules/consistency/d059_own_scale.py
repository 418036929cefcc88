"""D059: values are divided by their scale before they are stored in the type that it is made for."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.dtypes import DTYPES
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.analyses.sites import sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_QUANTISED = '''
@cake.schedule(target="sm_90a")
def quantise(lm, X: LM.gmem2d[LM.f32, "R", 1024], Q: LM.gmem2d[LM.e4m3, "R", 1024], S: LM.gmem2d[LM.f32, "R", 8], R: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="static", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(1, 1024), form="vec")
            s = lm.amax_scale(x, axis=1, block=128)
            lm.store(Q, lm.cast(x * lm.rcp(s), lm.e4m3), coords=(0, t.r))
            lm.store(S, s, coords=(0, t.r))
'''

PAGE = Page(
    code="D059",
    title="values multiplied by their own scale",
    statement="What is cast to the type of a scale from `lm.amax_scale` is divided by the scale, not multiplied by it.",
    why="The scale is what a stored number is multiplied by when it is read. Multiplied by it on the way in as well, nearly all values become zero or lose their digits, and the kernel that reads them scales them down once more.",
    failing=edit(_QUANTISED, ("x * lm.rcp(s)", "x * s")),
    passing=_QUANTISED,
    limits="Seen where the name that is bound to the scale is a factor beside a tile in the expression that is cast to 8 bits, and does not divide it as well.",
)


def check(program: Program) -> Iterator[Fault]:
    if "amax_scale" not in mentions(program):
        return
    made: dict[tuple[str, str], Expr] = {}
    for s in sites(program).of("compute"):
        value = s.op.operands.get("value")
        while isinstance(value, Expr) and value.op == "cast":
            value = value.args[0]
        if isinstance(value, Expr) and value.op == "amax_scale":
            made.update({(s.role.name, name): value for name in s.targets})
    for s in sites(program).ops:
        for operand in s.op.operands.values():
            for n in operand.parts() if isinstance(operand, Expr) else ():
                dtype = str(getattr(n.type, "dtype", "")) if n.op == "cast" else ""
                if dtype not in DTYPES or DTYPES[dtype].bits != 8 or DTYPES[dtype].kind != "float" or dtype == "ue8m0":
                    continue
                factor = next((f for factors in _products(n.args[0]) if (f := _by_its_own(s.role.name, factors, made)) is not None), None)
                if factor is not None:
                    name = written(str(factor.attrs["name"]), factor.span)
                    scale = made[s.role.name, str(factor.attrs["name"])]
                    fixes = (edits.replace(factor.span, f"lm.rcp({name})"),) if factor.span.line and factor.span.line == factor.span.end_line else ()
                    yield Fault("D059", f"this is multiplied by `{name}`, its own scale, and cast to {dtype}: the scale is what the stored number is multiplied by", factor.span if factor.span.line else n.span,
                                ((scale.span, "the scale is made here"),), f"divide by it: `* lm.rcp({name})`", fixes, {"role": s.role.name, "found": name})  # fmt: skip
                    return


def _products(e: Expr) -> Iterator[list[Expr]]:
    """The factors of each product that an expression may be, casts and bounds left aside."""
    if e.op in ("cast", "min", "max", "where", "select"):
        for a in e.args[1:] if e.op in ("where", "select") else e.args:
            yield from _products(a)
    else:
        yield _factors(e)


def _factors(e: Expr) -> list[Expr]:
    if e.op == "cast":
        return _factors(e.args[0])
    return [f for a in e.args for f in _factors(a)] if e.op == "mul" else [e]


def _by_its_own(role: str, factors: list[Expr], made: dict[tuple[str, str], Expr]) -> Expr | None:
    """A scale among factors of which another is a tile such as it was made for: one that is multiplied by another number is still a scale."""
    divisors = {str(f.args[0].attrs.get("name")) for f in factors if f.op == "rcp"}
    for f in factors:
        scale = made.get((role, str(f.attrs["name"]))) if f.op == "var" and f.attrs["name"] not in divisors else None
        of = scale.args[0].type if scale is not None else None
        if isinstance(of, FragT) and any(isinstance(x.type, FragT) and x.type.form == of.form for x in factors):
            return f
    return None
