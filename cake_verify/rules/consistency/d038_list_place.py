"""D038: a list is asked for places that it has."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import nodes
from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_ir.types import ListT
from cake_verify.analyses import ranges
from cake_verify.analyses.trips import spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_TOP = """
@cake.schedule(target="sm_80")
def top(lm, X: LM.gmem2d[LM.f32, "T", 64], W: LM.gmem2d[LM.f32, "T", 4], T: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(T, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 64), shape=(64, 64), form="acc", clip=True)
            best = lm.topk_list(x, 4, largest=True)
            best = lm.topk(x, axis=1, base=0, into=best)
            best = lm.finish(best)
            row = lm.iota(x, 0, base=t.m * 64)
            for k in lm.static_range(4):
                v = best[k]
                lm.store(W, v[0], coords=(k, row), clip=True)
"""

PAGE = Page(
    code="D038",
    title="a place that a list does not have",
    statement="A list of k values has the places 0 to k - 1; the variable of a loop that numbers them runs over no others.",
    why="A list lies in registers: the place behind its last is another value, or none.",
    failing=edit(_TOP, ("for k in lm.static_range(4)", "for k in lm.static_range(5)")),
    passing=_TOP,
    limits="Numbers whose range is not known are not objected to.",
)


def check(program: Program) -> Iterator[Fault]:
    if "list_item" not in mentions(program):
        return
    for site in ranges.live(program):
        for n in nodes(program)[site.op.id]:
            if n.op != "list_item" or n.args[1].op == "const" or not isinstance(n.args[0].type, ListT):
                continue
            k, r = n.args[0].type.k, ranges.of(program, site.role.name, n.args[1])
            if not r.tight or (r.lo >= 0 and r.hi < k):
                continue
            wrong = int(r.lo) if r.lo < 0 else int(r.hi)
            loop = next((x for x in reversed(site.loops) if any(e.op == "var" and e.attrs["name"] == x.var for e in n.args[1].parts())), None)
            related = () if loop is None else ((loop.head, f"`{spoken(n.args[1])}` comes to {wrong} here"),)
            yield Fault("D038", f"place {wrong} of a list of {k} is read: its places are 0 to {k - 1}", n.span, related, "let the loop end with the list", (), {"expected": k, "found": wrong})
            break
