"""D060: what is scaled in every round but the first is scaled from the second on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, For, If, Program
from cake_verify.analyses import edits
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import resolver_of, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_DECAYING = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def decaying(lm, A: LM.gmem2d[LM.bf16, "M", "K"], B: LM.gmem2d[LM.bf16, "N", "K"], G: LM.gmem1d[LM.f32, "KB"], C: LM.gmem2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(K % 16 == 0 and K > 0 and KB == K // 16)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 16), lm.cdiv(N, 8)))
    with work:
        acc = lm.frag(shape=(16, 8), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                a = lm.load(A, coords=(k * 16, t.m * 16), shape=(16, 16), form="a", clip=True)
                b = lm.load(B, coords=(k * 16, t.n * 8), shape=(8, 16), form="b", clip=True)
                if k > 0:
                    acc = acc * lm.ld(G, k)
                lm.mma(acc, a, b, init=(k == 0))
            lm.store(C, acc, coords=(t.n * 8, t.m * 16), clip=True)
'''

PAGE = Page(
    code="D060",
    title="a scaling that starts late",
    statement="Where a product starts an accumulator in one round and the rounds from some round on scale it, that is the round behind the start.",
    why="An accumulator that is rescaled in every round but the first (an online softmax, a decaying state) is wrong by one factor if the guard leaves out one round more: `if k > 1:` beside `init=(k == 0)`.",
    failing=edit(_DECAYING, ("if k > 0:", "if k > 1:")),
    passing=_DECAYING,
    limits="Decided where `init=` and the one condition around the scaling compare the variable of one loop with numbers, and nothing else in the loop assigns the accumulator.",
)

_ROUNDS = 12
"""Rounds that are looked at: conditions near the first one have changed sides by then."""


def check(program: Program) -> Iterator[Fault]:
    for s in sites(program).of("mma"):
        init, acc = s.op.operands.get("init"), s.op.operands.get("acc")
        if isinstance(init, Expr) and init.op != "const" and isinstance(acc, Expr) and acc.op == "var" and (fault := _late(program, s, init, str(acc.attrs["name"]))) is not None:
            yield fault


def _late(program: Program, s: Site, init: Expr, name: str) -> Fault | None:
    resolve = resolver_of(program, s.role.name)
    start = resolve(init)
    loop = next((x for x in reversed(s.loops) if x.kind != "tiles" and any(n.op == "var" and n.attrs.get("name") == x.var for n in start.parts())), None)
    if loop is None or loop.lo is None or loop.lo.op != "const":
        return None
    assigned = [x for x in sites(program).results.get((s.role.name, name), ()) if loop in x.loops]
    if len(assigned) != 1 or assigned[0].order > s.order or assigned[0].loops != s.loops:
        return None
    scaled, value = assigned[0], assigned[0].op.operands.get("value")
    inside = scaled.path[scaled.path.index(loop) + 1 :]
    guard = inside[0] if len(inside) == 1 and isinstance(inside[0], If) else None
    if guard is None or not isinstance(value, Expr) or value.op != "mul" or not any(a.op == "var" and a.attrs["name"] == name for a in value.args):
        return None
    first = int(loop.lo.attrs["value"])  # type: ignore[call-overload]  # bounds are integers
    cond, arm = resolve(guard.cond), scaled.arms[-1]
    begins = [bool(x) if (x := _at(start, loop, v)) is not None else None for v in range(first, first + _ROUNDS)]
    scales = [bool(x) is arm if (x := _at(cond, loop, v)) is not None else None for v in range(first, first + _ROUNDS)]
    if None in begins or None in scales or True not in begins or not scales[-1]:
        return None
    late = [first + i for i in range(begins.index(True) + 1, _ROUNDS) if not begins[i] and not scales[i]]
    if not late:
        return None
    var, begun = written(loop.var), first + begins.index(True)
    message = f"`{written(name)}` is started where `{var}` is {begun} and not scaled where it is {' and '.join(map(str, late[:3]))}, as it is in every round behind"
    fixes = (edits.replace(guard.cond.span, f"{var} > {begun}"),) if arm and guard.cond.span.line else ()
    return Fault("D060", message, guard.cond.span, ((s.op.spans.get("init", s.op.span), "started here"), (scaled.op.span, "scaled here")), "scale from the round behind the start on", fixes, {"role": s.role.name, "name": name})


def _at(e: Expr, loop: For, v: int) -> int | None:
    """The value of an expression of numbers and a loop's variable in one round; None for any other."""
    if e.op == "const":
        return int(x) if isinstance(x := e.attrs["value"], int) else None
    if e.op == "var":
        return v if e.attrs.get("name") == loop.var else None
    known = _OPERATIONS.get(e.op)
    args = [_at(a, loop, v) for a in e.args]
    return known(*args) if known is not None and None not in args else None


_OPERATIONS: dict[str, Callable[..., int]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "and": lambda a, b: bool(a and b), "or": lambda a, b: bool(a or b), "not": lambda a: not a, "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
}  # fmt: skip
