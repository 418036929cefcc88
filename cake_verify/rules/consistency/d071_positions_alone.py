"""D071: a least position is one of elements that were chosen."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.runs import defined
from cake_verify.analyses.sites import Site, sites
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_FIRST = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def first_of_largest(lm, X: LM.gmem2d[LM.f32, "R", "N"], AT: LM.gmem1d[LM.i32, "R"], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N == 256)
    pool = lm.smem(64)
    most = pool.view(offset=0, shape=(4,), dtype=lm.f32)
    least = pool.view(offset=16, shape=(4,), dtype=lm.i32)
    work = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(256,))
            top = lm.reduce(x, "max", across=work, scratch=most, sync=meet)
            here = lm.reduce(lm.where(x == top, lm.iota(x, 0), N), "min", across=work, scratch=least, sync=meet)
            lm.store(AT, here, coords=(t.r,))
            lm.sync(meet)
'''

PAGE = Page(
    code="D071",
    title="a reduction of positions alone",
    statement="A minimum, a maximum or a sum over positions (`lm.iota`) is one of those that a choice by the elements leaves.",
    why="The least of all positions is the first one, whatever the elements are: the choice that was to say which elements count is missing, and each row gets the same index.",
    failing=edit(_FIRST, ("lm.where(x == top, lm.iota(x, 0), N)", "lm.iota(x, 0)")),
    passing=_FIRST,
    limits="Decided for reductions of `lm.iota` itself, of sums and products of it with numbers, and of names for such.",
)

_PLAIN = frozenset({"iota", "add", "sub", "mul", "neg", "cast", "var", "const", "param", "field", "role_index"})


def check(program: Program) -> Iterator[Fault]:
    if "iota" not in mentions(program):
        return
    for s in sites(program).of("reduce_across", "compute"):
        x = s.op.operands.get("x" if s.op.name == "reduce_across" else "value")
        if not isinstance(x, Expr):
            continue
        for e in [x] if s.op.name == "reduce_across" else [n.args[0] for n in x.parts() if n.op in ("reduce", "sum")]:
            if _alone(program, s, e):
                yield Fault("D071", "this reduction is over positions alone: what it gives is known without any element", e.span if e.span.line else s.op.span, (),
                            "let the elements choose first, `lm.where(x == .., lm.iota(x, ..), ..)`", (), {"role": s.role.name})  # fmt: skip
                return


def _alone(program: Program, s: Site, e: Expr) -> bool:
    """Whether an expression is made of positions and numbers."""
    waiting, positions = [e], False
    for _ in range(40):
        if not waiting:
            return positions
        n = waiting.pop()
        if not isinstance(n.type, FragT) or n.type.form == "scalar":
            continue
        if n.op == "iota":
            positions = True
            continue
        n = defined(program, s.role.name, n) if n.op == "var" else n
        if n.op == "var" or n.op not in _PLAIN:
            return False
        waiting += [n] if n.op == "iota" else n.args
    return False
