"""D048: what divides the entries of a list sums all of them."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import mentions
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import resolver_of, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_ROUTE = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def route(lm, X: LM.gmem2d[LM.f32, "T", 64], W: LM.gmem2d[LM.f32, "T", 4], T: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 64), shape=(64, 64), form="acc", clip=True)
            best = lm.topk_list(x, 4, largest=True)
            best = lm.finish(lm.topk(x, axis=1, base=0, into=best))
            row = lm.iota(x, 0, base=t.m * 64)
            total = lm.rowvec(x, init=0.0)
            for k in lm.static_range(4):
                (v, who) = best[k]
                total = total + lm.exp(v)
            for k in lm.static_range(4):
                (v, who) = best[k]
                lm.store(W, lm.exp(v) / total, coords=(k, row), clip=True)
'''

PAGE = Page(
    code="D048",
    title="a sum over a part of what it divides",
    statement="Where a loop stores something of each entry of a list divided by a sum that another loop made of its entries, both loops go over the same entries.",
    why="Weights of the chosen are normalised by their sum. A sum that leaves the last one out makes all of them too large by a factor that differs from row to row, and they add up to more than one.",
    failing=edit(_ROUTE, ("            for k in lm.static_range(4):\n                (v, who) = best[k]\n                total", "            for k in lm.static_range(3):\n                (v, who) = best[k]\n                total")),
    passing=_ROUTE,
    limits="Decided for lists (`lm.topk_list`) and loops from 0 of a fixed number of rounds, and for sums that start at zero and that nothing else adds to.",
)  # fmt: skip


def check(program: Program) -> Iterator[Fault]:
    if "list_item" not in mentions(program):
        return
    for role in program.roles:
        yield from _role(program, role)


def _role(program: Program, role: str) -> Iterator[Fault]:
    own = sites(program).of_role(role)
    walks: dict[int, tuple[For, str, int]] = {}  # loops over entries of a list: the list and how many
    single: dict[str, set[int]] = {}
    for s in own:
        for n in _items(s):
            name, at = str(n.args[0].attrs.get("name")), n.args[1]
            loop = next((x for x in s.loops if at.op == "var" and x.var == at.attrs["name"]), None)
            rounds = _rounds(program, role, loop) if loop is not None else None
            if loop is not None and rounds is not None:
                walks[id(loop)] = loop, name, rounds
            elif at.op == "const":
                single.setdefault(name, set()).add(int(at.attrs["value"]))  # type: ignore[call-overload]  # an entry's number
    for loop, name, rounds in walks.values():
        for sum_ in _sums(own, loop):
            for longer, other, more in walks.values():
                if other != name or more <= rounds or not single.get(name, set()).isdisjoint(range(rounds, more)):
                    continue
                store = next((s for s in own if any(x is longer for x in s.loops) and s.op.name in ("store", "tma_store", "atomic", "send") and _divides(own, s, sum_)), None)
                if store is not None:
                    message = f"`{written(sum_)}` sums {rounds} entries of `{written(name)}`, and what is divided by it is stored for {more}"
                    yield Fault("D048", message, loop.head, ((store.op.span, "divided and stored here"), (longer.head, f"for each of {more}")), f"let the loop over `{written(loop.var)}` go over {more} entries, too", (),
                                {"role": role, "name": sum_, "expected": more, "found": rounds})  # fmt: skip
                    return


def _items(s: Site) -> Iterator[Expr]:
    for o in s.op.operands.values():
        for e in o if isinstance(o, tuple) else (o,):
            if isinstance(e, Expr):
                yield from (n for n in e.parts() if n.op == "list_item" and n.args[0].op == "var")


def _rounds(program: Program, role: str, loop: For) -> int | None:
    if loop.lo is None or loop.hi is None or loop.lo.attrs.get("value") != 0:
        return None
    n = resolver_of(program, role)(loop.hi).attrs.get("value")
    return n if isinstance(n, int) else None


def _sums(own: tuple[Site, ...], loop: For) -> list[str]:
    """What the body of a loop alone adds to, from zero on."""
    out = []
    for s in own:
        value = s.op.operands.get("value")
        if s.op.name != "compute" or len(s.targets) != 1 or not isinstance(value, Expr) or value.op != "add" or not s.path or s.path[-1] is not loop or not any(a.op == "var" and a.attrs["name"] == s.targets[0] for a in value.args):
            continue
        every = [x for x in own if s.targets[0] in x.targets]
        start = every[0].op.operands.get("value") if len(every) == 2 else None
        if isinstance(start, Expr) and start.attrs.get("init") == 0:
            out.append(s.targets[0])
    return out


def _divides(own: tuple[Site, ...], store: Site, name: str) -> bool:
    """Whether what is stored has been divided by a name, seen through names of the loop around."""
    waiting = [e for e in (store.op.operands.get("x"), store.op.operands.get("value")) if isinstance(e, Expr)]
    seen: set[str] = set()
    while waiting:
        for n in waiting.pop().parts():
            if n.op in ("rcp", "div") and any(x.op == "var" and x.attrs["name"] == name for x in n.args[-1].parts()):
                return True
            if n.op == "var" and str(n.attrs["name"]) not in seen:
                seen.add(str(n.attrs["name"]))
                waiting += [e for x in own if n.attrs["name"] in x.targets and isinstance(e := x.op.operands.get("value"), Expr)]
    return False
