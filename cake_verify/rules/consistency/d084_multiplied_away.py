"""D084: what is computed is not multiplied by zero on every path."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_KEPT = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def kept(lm, X: LM.gmem2d[LM.f32, "R", 256], LABEL: LM.gmem1d[LM.i32, "R"], Y: LM.gmem2d[LM.f32, "R", 256], R: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            label = lm.ld(LABEL, t.r)
            y = lm.exp(lm.load(X, coords=(0, t.r), shape=(256,)))
            if label < 0:
                y = y * 0.0
            lm.store(Y, y, coords=(0, t.r))
'''

PAGE = Page(
    code="D084",
    title="a result multiplied away",
    statement="A name that was computed is not multiplied by the number zero and kept under the same name under no further condition.",
    why="All that was computed for it is lost: the branch that was to say for which rows the result is zero is missing.",
    failing=edit(_KEPT, ("            if label < 0:\n                y = y * 0.0\n", "            y = y * 0.0\n")),
    passing=_KEPT,
    limits="Zeros of the shape of something else have a name of their own (`z = x * 0.0`) and are left alone, and so is what starts from a number or was loaded and no more than cast, and texts of which a tunable is zero: `c = c * BETA` takes its tunable's value.",
)

_NUMBERS = frozenset({"frag", "rowvec", "colvec", "const"})
_AS_LOADED = frozenset({"var", "cast", "finish"})


def check(program: Program) -> Iterator[Fault]:
    for n in mentions(program).get("mul", ()):
        if any(a.op == "const" and a.attrs["value"] == 0 for a in n.args):
            break
    else:
        return
    if any(v == 0 and v is not False for v in program.tunables.values()):
        return
    for s in sites(program).of("compute"):
        e = s.op.operands["value"]
        if not isinstance(e, Expr) or e.op != "mul" or len(s.targets) != 1:
            continue
        name = s.targets[0]
        ((x, zero), *_) = sorted([e.args, e.args[::-1]], key=lambda a: a[1].op != "const")
        if x.op != "var" or x.attrs["name"] != name or zero.op != "const" or zero.attrs["value"] != 0:
            continue
        before = _made(program, s)
        if before is not None:
            yield Fault("D084", f"`{written(name)}` is multiplied by zero on every path: what was computed for it is lost", s.op.span, ((before.op.span, "computed here"),), "say for which rows it is zero, or leave the work out", (),
                        {"role": s.role.name, "name": name})  # fmt: skip
            return


def _made(program: Program, s: Site) -> Site | None:
    """The assignment just in front that made what is multiplied, under no other condition and in no other loop."""
    bound = [b for b in sites(program).results.get((s.role.name, s.targets[0]), ()) if b.order < s.order]
    last = bound[-1] if bound else None
    if last is None or last.path != s.path or last.arms != s.arms:
        return None
    value = last.op.operands.get("value")
    return None if last.op.name != "compute" or not isinstance(value, Expr) or value.op in _NUMBERS or all(n.op in _AS_LOADED for n in value.parts()) else last
