"""D073: a round does not overwrite the product of the one before."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_verify.analyses.sites import Site, constant_rounds, rounds, sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_SCALED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def scaled(lm, A: LM.gmem2d[LM.bf16, "M", "K"], B: LM.gmem2d[LM.bf16, "N", "K"], S: LM.gmem1d[LM.f32, "G"], C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, G: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(K == 16 * G and G > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 16), lm.cdiv(N, 8)))
    with work:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(16, 8), dtype=lm.f32, form="acc", init=0.0)
            part = lm.frag(shape=(16, 8), dtype=lm.f32, form="acc")
            for k in lm.range(G):
                a = lm.load(A, coords=(k * 16, t.m * 16), shape=(16, 16), form="a", clip=True)
                b = lm.load(B, coords=(k * 16, t.n * 8), shape=(8, 16), form="b", clip=True)
                lm.mma(part, a, b, init=True)
                acc = acc + part * lm.ld(S, k)
            lm.store(C, acc, coords=(t.n * 8, t.m * 16), clip=True)
'''

PAGE = Page(
    code="D073",
    title="a product that the next round overwrites",
    statement="What a loop makes of a product in every round is used in the round, or added to what the rounds before it made, and not overwritten by the next round.",
    why="Only the last round's product is left behind the loop: all others are computed for nothing, and a sum over blocks is the last block.",
    failing=edit(_SCALED, ("acc = acc + part * lm.ld(S, k)", "acc = part * lm.ld(S, k)")),
    passing=_SCALED,
    limits="Decided for names that a loop gives a value made of a product of the same round, in the body of the loop itself, and that it neither reads nor changes otherwise; where it gives them another value under a condition they are left alone.",
)


def check(program: Program) -> Iterator[Fault]:
    products = [s for s in sites(program).of("mma") if s.loops and s.loops[-1].kind != "tiles"]
    for role in dict.fromkeys([s.role.name for s in products]):
        for loop, inside in rounds(program, role):
            if constant_rounds(loop) != 1 and any(s.op.name == "mma" and s.loops[-1] is loop for s in inside):
                fault = _overwritten(program, role, loop, inside)
                if fault is not None:
                    yield fault
                    return


def _overwritten(program: Program, role: str, loop: For, inside: tuple[Site, ...]) -> Fault | None:
    fresh = {name for s in inside if s.op.name == "mma" and s.path[-1] is loop for name in _names(s.op.operands["acc"])}
    for s in inside if fresh else ():
        value = s.op.operands.get("value")
        if s.op.name != "compute" or len(s.targets) != 1 or s.path[-1] is not loop or not isinstance(value, Expr):
            continue
        name = s.targets[0]
        if name in fresh or fresh.isdisjoint(_names(value)):
            continue
        others = [x for x in inside if x is not s]
        if name in _names(value) or any(name in x.targets or _reads(x, name) for x in others):
            continue
        after = [x for x in sites(program).of_role(role) if x.order > inside[-1].order and loop not in x.loops]
        use = next((x for x in after if _reads(x, name)), None)
        if use is None or any(_reads(x, n) or n in x.targets for n in fresh & _names(value) for x in others if x.op.name not in ("mma", "mma_wait")):
            continue
        message = f"`{written(name)}` is overwritten in every round of the loop over `{written(loop.var)}`, and read behind it only: of all products it holds the last"
        return Fault("D073", message, s.op.span, ((loop.head, "this loop"), (use.op.span, "read here")), f"add it up: `{written(name)} = {written(name)} + ..`", (), {"role": role, "name": name})
    return None


def _names(e: object) -> set[str]:
    return {str(n.attrs["name"]) for n in e.parts() if n.op == "var"} if isinstance(e, Expr) else set()


def _reads(s: Site, name: str) -> bool:
    """Whether an operation reads a name; to be the model of a shape is no use."""
    return any(name in _names(e) for key, o in s.op.operands.items() if key != "like" for e in (o if isinstance(o, tuple) else (o,)))
