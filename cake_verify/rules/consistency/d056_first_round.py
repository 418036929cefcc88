"""D056: the round that starts an accumulator from zero is one that the loop has."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_verify.analyses import edits
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import linear, resolver_of, spoken, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_CAUSAL = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def upper(lm, A: LM.gmem2d[LM.bf16, "M", "K"], B: LM.gmem2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(K % 16 == 0 and K >= M)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 16), lm.cdiv(N, 8)))
    with work:
        acc = lm.frag(shape=(16, 8), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(t.m, K // 16):
                a = lm.load(A, coords=(k * 16, t.m * 16), shape=(16, 16), form="a", clip=True)
                b = lm.load(B, coords=(k * 16, t.n * 8), shape=(8, 16), form="b", clip=True)
                lm.mma(acc, a, b, init=(k == t.m))
            lm.store(C, acc, coords=(t.n * 8, t.m * 16), clip=True)
'''

PAGE = Page(
    code="D056",
    title="a start that the loop may not come to",
    statement="Where `init=` of a product compares the loop's variable with a number, the loop starts there for every tile.",
    why="A loop that skips what a causal mask or a window leaves out starts at another number for every tile. `init=(k == 0)` is then true for the first tile only: the others add to what the accumulator held before, or to nothing that was ever written.",
    failing=edit(_CAUSAL, ("init=(k == t.m)", "init=(k == 0)")),
    passing=_CAUSAL,
    limits="Looked at for loops whose first number is another expression than the one compared, or a larger constant, and accumulators that nothing else starts in front of the loop.",
)


def check(program: Program) -> Iterator[Fault]:
    for s in sites(program).of("mma"):
        init = s.op.operands.get("init")
        if isinstance(init, Expr) and init.op == "eq" and (fault := _start(program, s, init)) is not None:
            yield fault


def _start(program: Program, s: Site, init: Expr) -> Fault | None:
    loop = next((x for x in reversed(s.loops) if x.kind != "tiles" and any(n.op == "var" and n.attrs.get("name") == x.var for n in init.parts())), None)
    if loop is None or loop.lo is None:
        return None
    resolve = resolver_of(program, s.role.name)
    constant, terms = linear(Expr("sub", tuple(resolve(a) for a in init.args)))
    counter = terms.pop(f"?{loop.var}", 0)
    if abs(counter) != 1:
        return None
    first, others = linear(resolve(loop.lo))
    start = {t: -counter * n for t, n in terms.items()}
    gap = first - (-counter * constant)
    if (start == others and gap <= 0) or (not others and not start and gap <= 0) or (start != others and not others) or _started(program, s, loop):
        return None
    name = written(loop.var)
    compared = init.args[1] if init.args[0].op == "var" else init.args[0]
    message = f"the product starts from zero where `{name}` is {spoken(compared)}, and the loop begins at {spoken(loop.lo)}: where the two differ it never does"
    fixes = (edits.replace(s.op.spans["init"], f"{name} == {spoken(loop.lo)}"),) if "init" in s.op.spans else ()
    return Fault("D056", message, s.op.spans.get("init", s.op.span), ((loop.head, "this loop"),), "start from zero in the round with which the loop begins", fixes, {"role": s.role.name})


def _started(program: Program, s: Site, loop: For) -> bool:
    """Whether the accumulator gets its value in front of the loop, or another product starts it."""
    acc = s.op.operands.get("acc")
    name = next((n.attrs.get("name") for n in acc.parts() if n.op == "var"), None) if isinstance(acc, Expr) else None
    if name is None:
        return True  # tensor memory, or a part of something
    inside = s.path[: s.path.index(loop)]
    for x in sites(program).results.get((s.role.name, str(name)), ()):
        value = x.op.operands.get("value")
        if not isinstance(value, Expr) or value.op != "frag":
            return True
        if value.attrs.get("init") is not None and (x.path == inside or all(p.kind == "tiles" and program.schedulers[str(p.scheduler)].kind == "grid" for p in inside[len(x.path) :] if isinstance(p, For))):
            return True
    return any(x is not s and x.op.name == "mma" and isinstance(a := x.op.operands.get("acc"), Expr) and any(n.attrs.get("name") == name for n in a.parts()) for x in sites(program).of_role(s.role.name))
