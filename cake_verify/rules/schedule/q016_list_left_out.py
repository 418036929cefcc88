"""Q016: a sum over a list is taken of all the places that it is used for."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import nodes
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_ir.types import ListT
from cake_verify.analyses import edits
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_WEIGHTS = """
@cake.schedule(target="sm_80")
def weights(lm, X: LM.gmem2d[LM.f32, "T", 64], W: LM.gmem2d[LM.f32, "T", 4], T: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(T, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 64), shape=(64, 64), form="acc", clip=True)
            best = lm.topk_list(x, 4, largest=True)
            best = lm.finish(lm.topk(x, axis=1, base=0, into=best))
            row = lm.iota(x, 0, base=t.m * 64)
            total = lm.rowvec(x, init=0.0)
            for k in lm.static_range(4):
                v = best[k]
                total = total + v[0]
            for k in lm.static_range(4):
                v = best[k]
                lm.store(W, v[0] / total, coords=(k, row), clip=True)
"""

PAGE = Page(
    code="Q016",
    title="a sum that leaves out the end of a list",
    statement="A sum over the places of a list that a loop uses for each of the places is taken of all of them.",
    why="Weights that are divided by the sum of all but the last do not add up to one: nothing is out of bounds, and every number looks right.",
    failing=edit(_WEIGHTS, ("            for k in lm.static_range(4):\n                v = best[k]\n                total", "            for k in lm.static_range(3):\n                v = best[k]\n                total")),
    passing=_WEIGHTS,
    limits="Decided for loops whose variable is the place and whose ends are numbers, where the sum is a running value of the shorter loop and the longer one uses it or what is computed of it in between.",
)


def check(program: Program) -> Iterator[Fault]:
    if "list_item" not in mentions(program):
        return
    found: dict[tuple[str, str], list[tuple[Site, For]]] = {}
    for s in sites(program).ops:
        for n in nodes(program)[s.op.id]:
            if n.op == "list_item" and isinstance(n.args[0].type, ListT) and n.args[0].op == "var" and n.args[1].op == "var":
                loop = next((x for x in s.loops if x.var == n.args[1].attrs["name"]), None)
                if loop is not None and _end(loop) is not None:
                    found.setdefault((s.role.name, str(n.args[0].attrs["name"])), []).append((s, loop))
    for (role, name), uses in found.items():
        longest = max(uses, key=lambda u: _end(u[1]) or 0)[1]
        for _, loop in uses:
            if (_end(loop) or 0) < (_end(longest) or 0) and (total := _sum(program, role, loop, longest)) is not None:
                yield _fault(name, loop, longest, total)
                break


def _end(loop: For) -> int | None:
    value = loop.hi.attrs["value"] if loop.hi is not None and loop.hi.op == "const" else None
    return value if isinstance(value, int) else None


def _sum(program: Program, role: str, loop: For, longest: For) -> str | None:
    """A running sum of a loop that another one uses, as it is or by what was computed of it in between."""
    own = sites(program).of_role(role)
    sums = {t for s in own if loop in s.loops and s.op.name == "compute" for t in s.targets
            if isinstance(e := s.op.operands["value"], Expr) and e.op == "add" and any(a.op == "var" and a.attrs["name"] == t for a in e.args)}  # fmt: skip
    read = {str(n.attrs["name"]) for s in own if longest in s.loops for n in nodes(program)[s.op.id] if n.op == "var"}
    made = {name: {name} for name in sums}
    for s in own if sums else ():
        if s.op.name == "compute" and loop not in s.loops and longest not in s.loops:
            of = {n.attrs["name"] for n in nodes(program)[s.op.id] if n.op == "var"}
            for names in made.values():
                if of & names:
                    names.update(s.targets)
    return min((name for name, names in made.items() if names & read), default=None)


def _fault(name: str, loop: For, longest: For, total: str) -> Fault:
    end, all_ = _end(loop), _end(longest)
    message = f"`{written(total)}` is the sum over places up to {(end or 0) - 1} of `{written(name)}`, and it is used for places up to {(all_ or 0) - 1}"
    first = loop.lo.attrs["value"] if loop.lo is not None and loop.lo.op == "const" else 0
    fixes = (edits.replace(loop.hi.span, f"lm.{'static_range' if loop.kind == 'static' else 'range'}({f'{first}, ' if first else ''}{all_})"),) if loop.hi is not None and loop.hi.span.line else ()
    return Fault("Q016", message, loop.head, ((longest.head, f"used here, for {all_} places"),), "let both loops end with the list", fixes, {"expected": all_, "found": end})
