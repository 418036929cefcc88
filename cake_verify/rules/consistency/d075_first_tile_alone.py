"""D075: what is summed up behind a loop over tiles has taken in all of them."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_ir.types import FragT
from cake_verify.analyses.sites import Site, covered, rounds, sites
from cake_verify.analyses.trips import linear, resolver_of, written
from cake_verify.rule import Page
from cake_verify.rules.consistency.d040_stands_still import places
from cake_verify.rules.examples import edit

_SPREAD = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def spread(lm, X: LM.gmem2d[LM.f32, "R", "N"], MEAN: LM.gmem1d[LM.f32, "R"], TOP: LM.gmem1d[LM.f32, "R"], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N % 256 == 0 and N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            head = lm.load(X, coords=(0, t.r), shape=(256,))
            top = lm.abs(head)
            total = head * 1.0
            for i in lm.range(1, N // 256):
                x = lm.load(X, coords=(i * 256, t.r), shape=(256,))
                top = lm.max(top, lm.abs(x))
                total = total + x
            lm.store(TOP, lm.reduce(top, "max", axis=1), coords=(t.r,))
            lm.store(MEAN, lm.sum(total, axis=1), coords=(t.r,))
'''

PAGE = Page(
    code="D075",
    title="a sum of the first tile alone",
    statement="Where a loop goes on with the tiles behind one that was loaded in front of it, what was made of that tile and is added up behind the loop is brought up to date in it, as others made of that tile are.",
    why="A maximum follows all tiles and a sum stays at the first: right for rows of one tile, which is what a small test has.",
    failing=edit(_SPREAD, ("                total = total + x\n", "")),
    passing=_SPREAD,
    limits="Decided for loops from 1 on over loads of the same tensor, one tile behind the load in front of the loop each, that bring another name made of the first tile up to date, and for tiles that nothing but the sum behind the loop reads.",
)


def check(program: Program) -> Iterator[Fault]:
    loads = sites(program).of("load")
    if not any(s.loops and s.loops[-1].kind != "tiles" for s in loads):
        return
    for role in dict.fromkeys([s.role.name for s in loads]):
        for loop, inside in rounds(program, role):
            first = loop.lo.attrs.get("value") if loop.lo is not None and loop.lo.op == "const" else None
            if first == 1 and (fault := _left(program, role, loop, inside)) is not None:
                yield fault
                return


def _left(program: Program, role: str, loop: For, inside: tuple[Site, ...]) -> Fault | None:
    own = sites(program).of_role(role)
    path = inside[0].path[: inside[0].path.index(loop)]
    before = [s for s in own if s.order < inside[0].order and s.path == path]
    changed = {t for s in inside for t in (*s.targets, *places(s))}
    for here in (s for s in inside if s.op.name == "load" and s.path[-1] is loop):
        head = next((s for s in reversed(before) if s.op.name == "load" and _before(program, role, loop, s, here)), None)
        if head is None:
            continue
        old, new = _made(before, head), _made(inside, here)
        siblings = [n for n in old if n in changed and n in new]
        if not siblings:
            continue
        for name, made in old.items():
            if name in changed or any(name in _read(s) for s in inside):
                continue
            later = [s for s in own if s.order > inside[-1].order and name in _read(s)]
            use = later[0] if later and all(_summed(s, name) for s in later) else None
            if use is not None and isinstance(made.op.type, FragT) and made.op.type.cols == covered(head.op, 0):
                message = f"`{written(name)}` is made of the first tile, and what it is added up to here lacks the tiles that the loop over `{written(loop.var)}` brings: `{written(siblings[0])}` takes them in"
                return Fault("D075", message, use.op.span, ((made.op.span, "made here"), (loop.head, "this loop")), f"bring it up to date in the loop: `{written(name)} = {written(name)} + ..`", (), {"role": role, "name": name})
    return None


def _before(program: Program, role: str, loop: For, head: Site, here: Site) -> bool:
    """Whether a load brings the tile in front of the one that a loop starts with."""
    a, b = head.op.operands.get("coords"), here.op.operands.get("coords")
    if head.op.attrs.get("tensor") is None or head.op.attrs.get("tensor") != here.op.attrs.get("tensor") or not isinstance(a, tuple) or not isinstance(b, tuple) or len(a) != len(b):
        return False
    resolve, moved = resolver_of(program, role), 0
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        if isinstance(x.type, FragT) or isinstance(y.type, FragT):
            return False
        (c, mine), (d, theirs) = linear(resolve(x)), linear(resolve(y))
        step = theirs.pop(f"?{loop.var}", 0)  # the loop starts at 1, and the tile in front of that is what it would be at 0
        if mine != theirs or c != d or (step and step != covered(here.op, k)):
            return False
        moved += bool(step)
    return moved == 1


def _made(own: list[Site] | tuple[Site, ...], load: Site) -> dict[str, Site]:
    """What is computed from a load, by name."""
    out = {t: load for t in load.targets}
    for s in own:
        if s.order > load.order and s.op.name == "compute" and len(s.targets) == 1 and not out.keys().isdisjoint(_read(s)) and not _nothing(s.op.operands["value"]):
            out[s.targets[0]] = s
    return out


def _nothing(e: object) -> bool:
    """Whether a product with zero has taken the shape of a tile, and nothing else."""
    return isinstance(e, Expr) and e.op == "mul" and any(a.op == "const" and a.attrs["value"] == 0 for a in e.args)


def _read(s: Site) -> set[str]:
    """The names that an operation reads; to be the model of a shape is no use."""
    operands = (e for key, o in s.op.operands.items() if key != "like" for e in (o if isinstance(o, tuple) else (o,)) if isinstance(e, Expr))
    return {str(n.attrs["name"]) for e in operands for n in e.parts() if n.op == "var"}


def _summed(s: Site, name: str) -> bool:
    """Whether an operation does nothing with a name but add up its elements."""
    if s.op.name == "reduce_across":
        x = s.op.operands.get("x")
        return s.op.attrs.get("op") == "add" and isinstance(x, Expr) and x.op == "var"
    uses = [n for o in s.op.operands.values() if isinstance(o, Expr) for n in o.parts() if any(a.op == "var" and a.attrs["name"] == name for a in n.args)]
    return bool(uses) and all(n.op == "sum" or (n.op == "reduce" and n.attrs.get("op") == "add") for n in uses)
