"""D027: a scalar summed over warps that hold the same value."""

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page

_GOOD = '''@cake.schedule(target="sm_90a")
def f(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32]):
    lm.launch(grid="tiles")
    pool = lm.smem(32)
    part = pool.view(offset=0, shape=(8,), dtype=lm.f32)
    work = lm.role(warps=range(0, 8), members=8)
    cta = lm.named_barrier(work)
    with work:
        x = lm.load(X, coords=(128 * work.index,), shape=(128,), form="vec")
        s = lm.reduce(x, "add")
        total = lm.reduce(s, "add", across=work, scratch=part, sync=cta)
        lm.store(Y, x * total, coords=(128 * work.index,))
'''

PAGE = Page(
    code="D027",
    title="a scalar summed over warps that hold the same value",
    statement="`across=` takes one value from every warp of the role; a scalar is equal on all warps of its member, so a vector that several warps hold is reduced to one with `across=`.",
    why="A member of several warps would count its value once a warp, so a sum comes out too large by that factor; without `across=` each warp has the sum of its own part only.",
    failing=_GOOD.replace("members=8", "members=4").replace("128 * work.index", "256 * work.index").replace("shape=(128,)", "shape=(256,)").replace(
        's = lm.reduce(x, "add")', 's = lm.reduce(x, "add", across=work, scratch=part, sync=cta)'
    ),
    passing=_GOOD,
)


def check(program: Program) -> Iterator[Fault]:
    """Vectors of several warps that are reduced to a scalar without anything that the warps share."""
    for s in sites(program).of("compute") if mentions(program).keys() & {"reduce", "sum"} else ():
        value = s.op.operands.get("value")
        if s.role.member_warps == 1 or not isinstance(value, Expr):
            continue
        for n in value.parts():
            t = n.args[0].type if n.args else None
            if n.op in ("reduce", "sum") and isinstance(t, FragT) and t.form == "vec" and not n.attrs.get("partial") and not (isinstance(n.type, FragT) and n.type.form == "rowvec"):
                yield Fault("D027", f"{s.role.member_warps} warps hold this vector, and each would have the result of its own part", n.span, ((s.role.span, f"{s.role.member_warps} warps a member"),),
                            f"reduce over all of them: `across={s.role.name}`, with `scratch=` of a value a warp and a `sync=`", (), {"expected": 1, "found": s.role.member_warps})  # fmt: skip
                break
