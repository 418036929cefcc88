"""D055: what is combined element by element moves together."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.leaf_places import Leaf, leaves_of
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import canonical, resolver_of, spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_GATED = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def gated(lm, X: LM.gmem2d[LM.f32, "ROWS", "D"], G: LM.gmem2d[LM.f32, "ROWS", "D"], cu: LM.gmem1d[LM.i32, "BP"], Y: LM.gmem2d[LM.f32, "ROWS", "D"], ROWS: LM.i32, D: LM.i32, BP: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(BP > 1)
    lm.assume_values(cu, 0, ROWS + 1, sorted=True)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(BP - 1,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            first = lm.ld(cu, t.b)
            for i in lm.range(lm.ld(cu, t.b + 1) - first):
                x = lm.load(X, coords=(0, first + i), shape=(128,), clip=True)
                g = lm.load(G, coords=(0, first + i), shape=(128,), like=x, clip=True)
                lm.store(Y, x * lm.sigmoid(g), coords=(0, first + i), clip=True)
'''

PAGE = Page(
    code="D055",
    title="combined elements that move apart",
    statement="Loads that one expression combines element by element follow the same tiles, and the same offsets from memory, along an axis that their tensors share by name.",
    why="Where one of them moves with `t.m` and the other with `t.n`, or one starts at its sequence's offset and the other does not, they meet in the first tile and nowhere else: a test of one tile or one sequence is right.",
    failing=edit(_GATED, ("g = lm.load(G, coords=(0, first + i)", "g = lm.load(G, coords=(0, i)")),
    passing=_GATED,
    limits="Seen for loads of whole views or tensors under names that are bound once, of coordinates that are numbers. Nothing is said of starts that differ by rounds, constants or arguments, of axes without a name, of fields that count the same number of tiles (each tile meets each other), and of loads that a mask or a table places.",
)


def check(program: Program) -> Iterator[Fault]:
    if len(sites(program).of("load", "ldmatrix")) < 2:
        return
    told: set[tuple[int, int]] = set()
    for s in sites(program).of("compute", "store", "reduce_across", "atomic"):
        leaves = leaves_of(program, s)
        for i, one in enumerate(leaves):
            for other in leaves[:i]:
                axis = _apart(program, one, other)
                if axis is not None and (met := (one.site.number, other.site.number)) not in told:
                    told.add(met)
                    yield _fault(one, other, axis)
                    return


def _apart(program: Program, one: Leaf, other: Leaf) -> str | None:
    """An axis along which two loads do not follow the same tiles or offsets."""
    for axis in one.along.keys() & other.along.keys():
        (kind, _, a, _), (other_kind, _, b, _) = one.along[axis], other.along[axis]
        if kind != other_kind:
            continue
        tiles, others = ({t for t in x if t.startswith("tile.")} for x in (a, b))
        if tiles and others and tiles.isdisjoint(others):
            if _pairs(program, one.site, tiles | others):
                continue
            return axis
        if kind != "one" and ((tiles and not b) or (others and not a)):  # a run that stands still beside one that moves
            return axis
        differ = {t for t in {*a, *b} if a.get(t, 0) != b.get(t, 0)}
        if differ and tiles == others and all(t.partition("[")[0] in prefix_tensors(program) for t in differ) and _counted(a) == _counted(b):
            return axis
    return None


def _pairs(program: Program, s: Site, terms: set[str]) -> bool:
    """Whether fields of a tile count the same things: then each of these meets each other, as in a table of distances."""
    names = {t.removeprefix("tile.") for t in terms}
    found = [program.schedulers[str(x.scheduler)] for x in s.loops if x.kind == "tiles"]
    resolve = resolver_of(program, "")
    counts = [{canonical(resolve(n)) for n, name in zip(d.tiles, d.names, strict=True) if name in names} for d in found if names <= set(d.names)]
    return any(len(c) == 1 for c in counts)


def _counted(terms: dict[str, int]) -> dict[str, int]:
    return {t: c for t, c in terms.items() if "[" not in t}


def _fault(one: Leaf, other: Leaf, axis: str) -> Fault:
    if one.site.number < other.site.number:
        one, other = other, one
    at, there = (x.site.op.operands["coords"][x.along[axis][3]] for x in (one, other))  # type: ignore[index]  # coordinates, see `_along`
    message = f"`{one.tensor}` is read at `{spoken(at)}` along `{axis}` and `{other.tensor}` at `{spoken(there)}`, and the two are combined element by element"  # type: ignore[arg-type]  # expressions
    related = ((other.site.op.spans.get("coords", other.site.op.span), "read here"),)
    return Fault("D055", message, one.site.op.spans.get("coords", one.site.op.span), related, f"let both follow the same tile and offset along `{axis}`", (),
                 {"role": one.site.role.name, "axis": axis, "tensor": one.tensor})  # fmt: skip
