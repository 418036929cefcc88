"""Q019: what goes round a ring of CTAs comes past each of them once."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, prod

from cake_ir.derive.structure import nodes
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_verify.analyses import edits
from cake_verify.analyses.sites import Site, constant_rounds, sites
from cake_verify.analyses.trips import resolver_of, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_RING = '''
@cake.schedule(target="sm_90a")
def ring(lm, X: LM.gmem2d[LM.f32, "N", 64], Y: LM.gmem2d[LM.f32, "N", 64], N: LM.i32, *, PARTS=4):
    lm.launch(grid="persistent", cluster=(PARTS, 1))
    lm.assume(N % (64 * PARTS) == 0)
    pool = lm.smem(2 * 64 * 64 * 4)
    box = pool.view(offset=0, shape=(64, 64), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, 4))
    slots = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=slots, prod=[work], cons=[work], arrive="tx", scope="cluster")
    empty = lm.barrier(pipeline=slots, prod=[work], cons=[work], arrive="warp", scope="cluster", primed=True)
    sched = lm.scheduler(kind="static", tiles=(PARTS, N // (64 * PARTS)), names=("p", "b"), cluster=(PARTS, 1))
    with work:
        for t in lm.tiles(sched):
            mine = lm.load(X, coords=(0, (t.b * PARTS + t.p) * 64), shape=(64, 64), form="vec")
            total = mine * 1.0
            for h in lm.range(PARTS - 1):
                s = lm.step(slots)
                lm.wait(empty, stage=s)
                box.send(mine, cta=(lm.cta_rank() + 1) % PARTS, barrier=full, stage=s)
                lm.wait(full, stage=s)
                mine = box[s].load(form="vec", like=mine)
                lm.arrive(empty, stage=s)
                total = total + mine
            lm.store(Y, total, coords=(0, (t.b * PARTS + t.p) * 64))
'''

PAGE = Page(
    code="Q019",
    title="a ring that ends early or comes round again",
    statement="A loop that hands a value on from CTA to CTA of a cluster until all have seen it has as many rounds as there are other CTAs, where the own value was used in front of it.",
    why="One round less and the part of one CTA is missing in every sum; one more and each CTA's own part comes back and is counted again.",
    failing=edit(_RING, ("lm.range(PARTS - 1)", "lm.range(PARTS)")),
    passing=_RING,
    limits="Decided where the loop sends a name, in every round, to the CTA a fixed number of places on, round the whole cluster, reads the same view back into that name, uses it behind that and used it in front of the loop, and has one round more or one less.",
)


def check(program: Program) -> Iterator[Fault]:
    around = prod(program.launch.cluster) if program.launch is not None else 1
    if around < 3:
        return
    for s in sites(program).of("send"):
        x, loop = s.op.operands.get("x"), s.loops[-1] if s.loops else None
        rounds = constant_rounds(loop) if loop is not None and loop.kind != "tiles" else None
        if loop is None or rounds is None or s.path[-1] is not loop or abs(rounds - (around - 1)) != 1 or not isinstance(x, Expr) or x.op != "var" or not _next(program, s, around):
            continue
        name = str(x.attrs["name"])
        if _handed_on(program, s, loop, name):
            yield _fault(s, loop, name, rounds, around)


def _next(program: Program, s: Site, around: int) -> bool:
    """Whether a send goes to a CTA some places on, and comes to every one of the cluster so."""
    to = s.op.operands.get("cta")
    if not isinstance(to, Expr):
        return False
    e = resolver_of(program, s.role.name)(to)
    if e.op != "mod" or e.args[1].op != "const" or e.args[1].attrs["value"] != around or e.args[0].op != "add":
        return False
    ranks = [a for a in e.args[0].args if a.op == "cta_rank" and a.attrs.get("axis") is None]
    by = [a.attrs["value"] for a in e.args[0].args if a.op == "const"]
    return len(ranks) == 1 and len(by) == 1 and isinstance(by[0], int) and gcd(by[0], around) == 1


def _handed_on(program: Program, send: Site, loop: For, name: str) -> bool:
    """Whether the name is read back in the loop from where it was sent to, used behind that and nowhere else in the loop, and used in front of the loop."""
    own = sites(program).of_role(send.role.name)
    inside = [s for s in own if loop in s.loops]
    back = [s for s in inside if name in s.targets]
    if len(back) != 1 or back[0].op.name != "load" or back[0].order < send.order or back[0].path != send.path or _declared(back[0].op.operands.get("view")) != _declared(send.op.operands.get("view")):
        return False
    uses = [s for s in own if s is not send and s is not back[0] and any(n.op == "var" and n.attrs["name"] == name for n in nodes(program)[s.op.id])]
    around = [s for s in uses if s.order < inside[0].order and s.path == _before(send, loop)]
    return bool(around) and any(s in inside for s in uses) and all(s.order > back[0].order for s in uses if s in inside)


def _before(s: Site, loop: For) -> tuple[object, ...]:
    """What stands around a loop that an operation is in."""
    return s.path[: s.path.index(loop)]


def _declared(e: object) -> str:
    while isinstance(e, Expr) and e.args:
        e = e.args[0]
    return str(e.attrs["view"]) if isinstance(e, Expr) and e.op == "view" else ""


def _fault(s: Site, loop: For, name: str, rounds: int, around: int) -> Fault:
    what = "the part of one CTA never comes" if rounds < around else "each CTA's own part comes back and is counted again"
    message = f"`{written(name)}` goes round {around} CTAs in {around - 1} rounds, and this loop has {rounds}: {what}"
    fixes = (edits.replace(loop.lo.span, f"lm.{'static_range' if loop.kind == 'static' else 'range'}({around - 1})"),) if loop.lo is not None and loop.lo.span.line and loop.lo.attrs.get("value") == 0 else ()
    return Fault("Q019", message, loop.head, ((s.op.span, "sent on here"),), f"hand it on {around - 1} times", fixes, {"expected": around - 1, "found": rounds, "role": s.role.name})
