"""D072: a loop over a part of an axis takes in none of the next part."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.structure import nodes
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, If, Program
from cake_ir.types import FragT
from cake_verify.analyses import ranges
from cake_verify.analyses.left_out import without_offset
from cake_verify.analyses.runs import compared, run_of
from cake_verify.analyses.sites import Site, covered, rounds
from cake_verify.analyses.trips import canonical, linear, resolver_of, spoken
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_GROUPS = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def group_sums(lm, X: LM.gmem1d[LM.f32, "N"], OFFS: LM.gmem1d[LM.i32, "G1"].const, Y: LM.gmem1d[LM.f32, "G"], N: LM.i32, G: LM.i32, G1: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(G1 == G + 1)
    lm.assume_values(OFFS, 0, N + 1, sorted=True)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            lo = lm.ld(OFFS, t.g)
            hi = lm.ld(OFFS, t.g + 1)
            total = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0)
            for i in lm.range(lm.cdiv(hi - lo, 256)):
                x = lm.load(X, coords=(lo + i * 256,), shape=(256,), clip=True)
                total = total + lm.where(lm.iota(x, 0, base=lo + i * 256) < hi, x, 0.0)
            lm.store(Y, lm.sum(total, axis=1), coords=(t.g,))
'''

PAGE = Page(
    code="D072",
    title="a part that takes in some of the next",
    statement="Where a loop goes over a part of an axis tile by tile and adds up what it loads, the elements of its last tile that lie behind the part's end are kept out of it.",
    why="Behind the end of a part lies the next one: its first elements are counted twice, and only where each part is a multiple of the tile does nobody see it. A tensor's end is another thing: a clipped load brings nothing from there.",
    failing=edit(_GROUPS, ("lm.where(lm.iota(x, 0, base=lo + i * 256) < hi, x, 0.0)", "x")),
    passing=_GROUPS,
    limits="Decided for `lm.cdiv(hi - lo, B)` rounds over loads of B elements from `lo + i * B` on, where hi is `lm.min(lo + part, N)` or the offset behind lo's, and the loop adds to a name of its own, or to memory. Any choice, mask or condition in the loop counts as one that keeps the rest out, but for a comparison "
    "of positions with a number behind hi.",
)

_CHOOSES = frozenset({"where", "select", "in_bounds"})


def check(program: Program) -> Iterator[Fault]:
    for role in program.roles:
        for loop, inside in rounds(program, role):
            if loop.hi is None or loop.lo is None or loop.hi.op not in ("cdiv", "var") or loop.lo.op != "const" or loop.lo.attrs["value"] != 0:
                continue
            hi = resolver_of(program, role)(loop.hi)
            if hi.op != "cdiv" or hi.args[0].op != "sub" or not isinstance(tile := hi.args[1].attrs.get("value"), int):
                continue
            end, start = hi.args[0].args
            load = next((s for s in inside if s.op.name == "load" and s.path[-1] is loop and _from(program, s, loop, start, tile)), None)
            if load is None or not _ends_inside(program, role, end, start, tile) or not any(_adds(s) for s in inside):
                continue
            fault = _beyond(program, loop, inside, load, end, start, tile)
            if fault is not None:
                yield fault
                return


def _from(program: Program, s: Site, loop: For, start: Expr, tile: int) -> bool:
    """Whether a load brings the round's tile of a part."""
    coords = s.op.operands.get("coords")
    if not isinstance(coords, tuple) or s.op.operands.get("mask") is not None or any(isinstance(c.type, FragT) for c in coords):
        return False
    constant, live = linear(Expr("sub", (resolver_of(program, s.role.name)(coords[0]), start)))
    return not constant and live == {f"?{loop.var}": tile} and covered(s.op, 0) == tile


def _ends_inside(program: Program, role: str, end: Expr, start: Expr, tile: int) -> bool:
    """Whether a part ends where the next one of its kind begins, and not with a tile."""
    if end.op == "ld":
        return start.op == "ld" and start.attrs["tensor"] == end.attrs["tensor"] and linear(Expr("sub", (end.args[0], start.args[0]))) == (1, {})
    text = canonical(start)
    lengths = [other for a in end.args if a.op == "add" for x, other in (a.args, a.args[::-1]) if canonical(x) == text] if end.op == "min" else []
    return bool(lengths) and not any(ranges.of(program, role, n).multiple_of(tile) for n in lengths)


def _adds(s: Site) -> bool:
    """Whether an operation adds to memory or to a name of its own."""
    value = s.op.operands.get("value")
    if s.op.name == "atomic":
        return s.op.attrs.get("op", "add") == "add"
    return s.op.name == "compute" and isinstance(value, Expr) and value.op in ("add", "fma") and any(n.op == "var" and n.attrs["name"] in s.targets for n in value.parts())


def _beyond(program: Program, loop: For, inside: tuple[Site, ...], load: Site, end: Expr, start: Expr, tile: int) -> Fault | None:
    role, resolve = load.role.name, resolver_of(program, load.role.name)
    masked, hi = False, loop.hi
    till = spoken(hi.args[0].args[0] if hi is not None and hi.op == "cdiv" and hi.args[0].op == "sub" else end)
    for s in inside:
        masked |= s.op.operands.get("mask") is not None or any(isinstance(p, If) for p in s.path[s.path.index(loop) :])
        for n in nodes(program)[s.op.id]:
            masked |= n.op in _CHOOSES
            c = compared(program, role, n.args[0]) if n.op in ("where", "select") else None
            run = run_of(program, role, c.args[0]) if c is not None and c.op in ("lt", "le") and not isinstance(c.args[1].type, FragT) else None
            if c is None or run is None:
                continue
            here = Expr("add", (start, Expr("mul", (Expr("var", (), {"name": loop.var}), Expr("const", (), {"value": tile})))))  # where the round's tile starts
            more, live = linear(Expr("sub", (Expr("sub", (resolve(c.args[1]), end)), Expr("sub", (run[0], here)))))
            more += c.op == "le"
            if not live and 0 < more < tile:
                message = f"this lets {more} element{'s' if more > 1 else ''} of the next part through: the part of this loop ends at `{till}`"
                return Fault("D072", message, c.span if c.span.line else s.op.span, ((loop.head, "in this loop"), (load.op.span, "loaded here")), "end where the part does",
                             without_offset(c.args[1]) if more == 1 and c.op == "lt" else (), {"role": role, "more": more})  # fmt: skip
    if masked:
        return None
    adds = next(s for s in inside if _adds(s))
    return Fault("D072", f"{call(load.op)} reaches past `{till}` in the last round, where the next part begins, and nothing keeps that out of this sum", adds.op.span, ((load.op.span, "loaded here"), (loop.head, f"goes over whole tiles of {tile}")),
                 f"choose first: `lm.where(lm.iota(x, 0, base=..) < {till}, x, 0)`", (), {"role": role})  # fmt: skip
