"""D047: a reduction that a round adds follows the rounds."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_ir.types import FragT
from cake_verify.analyses.sites import Site, rounds, sites
from cake_verify.analyses.trips import written
from cake_verify.rule import Page
from cake_verify.rules.consistency.d040_stands_still import places
from cake_verify.rules.examples import edit

_WEIGHTS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def weights(lm, X: LM.gmem2d[LM.f32, "T", 64], W: LM.gmem1d[LM.f32, "T"], T: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 64), shape=(64, 64), form="acc", clip=True)
            best = lm.topk_list(x, 4, largest=True)
            best = lm.finish(lm.topk(x, axis=1, base=0, into=best))
            col = lm.iota(x, 1)
            total = lm.rowvec(x, init=0.0)
            for k in lm.static_range(4):
                (v, who) = best[k]
                total = total + lm.sum(lm.where(col == who, x, 0.0), axis=1)
            lm.store(W, total, coords=(t.m * 64,), clip=True)
'''

PAGE = Page(
    code="D047",
    title="every round adds or stores the same",
    statement="A reduction that a loop adds to a running sum, or stores at places that follow its rounds, is not the same in every round: something in it follows them.",
    why="A reduction of what no round changes is added as often as there are rounds: the mask or the slice that was to pick the round's part is missing.",
    failing=edit(_WEIGHTS, ("lm.sum(lm.where(col == who, x, 0.0), axis=1)", "lm.sum(x, axis=1)")),
    passing=_WEIGHTS,
    limits="Decided for reductions of names that nothing in the loop assigns, in the body of the loop itself; sums under a condition inside the loop are left alone, and so is a reduction that has a name and is added. What is stored counts where the loop itself reduces it: a reduction in front of the loop may be spread by it.",
)

_REDUCTIONS = frozenset({"sum", "reduce"})
_FIXED = frozenset({"var", "const", "param", "add", "sub", "mul", "div", "neg", "exp", "exp2", "max", "min", "cast", "sum", "reduce", "finish", "abs", "where", "lt", "le", "gt", "ge", "eq", "ne", "iota", "field", "item", "rcp", "log", "log2", "rsqrt"})
_MOST = 400
"""Nodes of a value that is looked at."""


def check(program: Program) -> Iterator[Fault]:
    if _REDUCTIONS.isdisjoint(mentions(program)):
        return
    for s in sites(program).of("compute"):
        value = s.op.operands.get("value")
        if not s.loops or s.path[-1] is not s.loops[-1] or s.loops[-1].kind == "tiles" or len(s.targets) != 1 or not isinstance(value, Expr) or value.op != "add":
            continue
        term = next((b for a, b in (value.args, value.args[::-1]) if a.op == "var" and a.attrs["name"] == s.targets[0]), None)
        if term is not None and not (isinstance(value.type, FragT) and value.type.dtype == "i32") and (fault := _again(program, s, term)) is not None:
            yield fault
            return
    for s in sites(program).of("store"):
        if s.loops and s.path[-1] is s.loops[-1] and s.loops[-1].kind != "tiles" and (fault := _spread(program, s)) is not None:
            yield fault
            return


def _spread(program: Program, s: Site) -> Fault | None:
    """A store whose place follows the rounds and whose value is reduced anew in each of them from what none of them changes."""
    loop, role, x, coords = s.loops[-1], s.role.name, s.op.operands.get("x"), s.op.operands.get("coords")
    if not isinstance(x, Expr) or not isinstance(coords, tuple) or (loop.hi is not None and loop.hi.op == "const" and loop.hi.attrs["value"] == 1):
        return None
    inside = next(inside for y, inside in rounds(program, role) if y is loop)
    changed = _changed(program, role, loop, inside)
    if not any(n.op == "var" and n.attrs["name"] in changed for c in coords for n in c.parts()):
        return None
    nodes, waiting, reduced = list(x.parts()), [x], None
    while waiting:
        for n in waiting.pop().parts():
            if n.op not in _FIXED or (n.op == "var" and n.attrs["name"] == loop.var):
                return None
            if n.op in _REDUCTIONS:
                reduced = n
            if n.op == "var" and n.attrs["name"] in changed:
                made = [y for y in inside if n.attrs["name"] in (*y.targets, *places(y))]
                value = made[0].op.operands.get("value") if len(made) == 1 and made[0].path == s.path and made[0].op.name == "compute" and made[0].order < s.order else None
                if not isinstance(value, Expr) or len(nodes) > _MOST:
                    return None
                nodes += value.parts()
                waiting.append(value)
    if reduced is None:
        return None
    message = f"every round of the loop over `{written(loop.var)}` stores the same at another place: nothing in this value follows the rounds, though each reduces it anew"
    return Fault("D047", message, s.op.span, ((loop.head, "this loop"), *(((reduced.span, "reduced here"),) if reduced.span.line else ())), "let what is reduced follow the round, or reduce it once in front of the loop", (), {"role": role})


def _changed(program: Program, role: str, loop: For, inside: tuple[Site, ...]) -> set[str]:
    """The names that a round gives a value, its own variable among them."""
    changed = {t for x in inside for t in (*x.targets, *places(x))} | {loop.var}
    return changed | {name for (owner, name), found in sites(program).bindings.items() if owner == role and any(any(y is loop for y in b.path) for b in found)}


def _again(program: Program, s: Site, term: Expr) -> Fault | None:
    loop, nodes, role = s.loops[-1], term.parts(), s.role.name
    if not any(n.op in _REDUCTIONS for n in nodes) or any(n.op not in _FIXED for n in nodes) or (loop.hi is not None and loop.hi.op == "const" and loop.hi.attrs["value"] == 1):
        return None
    inside = next(inside for x, inside in rounds(program, role) if x is loop)
    changed = _changed(program, role, loop, inside)
    if any(n.op == "var" and n.attrs["name"] in changed for n in nodes):
        return None
    message = f"every round of the loop over `{written(loop.var)}` adds the same to `{written(s.targets[0])}`: nothing in this term follows the rounds"
    return Fault("D047", message, s.op.span, ((loop.head, "this loop"),), "add it once behind the loop, or let it follow the round", (), {"role": role, "name": s.targets[0]})
