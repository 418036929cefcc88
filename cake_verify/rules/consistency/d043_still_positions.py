"""D043: positions in a mask move with the tile that they are positions of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cake_ir.derive.mentions import holding, mentions
from cake_ir.derive.structure import nodes
from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_ir.span import Span
from cake_ir.types import FragT
from cake_verify.analyses.moving_tiles import Still
from cake_verify.analyses.moving_tiles import still as still_in_products
from cake_verify.analyses.runs import defined, mask_ends, run_of
from cake_verify.analyses.sites import Site, covered, extent_along, sites
from cake_verify.analyses.trips import linear, resolver_of, spoken, written
from cake_verify.rule import Page
from cake_verify.rules.consistency.d036_ragged_length import check as ragged_lengths
from cake_verify.rules.examples import edit

_PICK = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def pick(lm, X: LM.gmem2d[LM.f32, "B", "V"], LABEL: LM.gmem1d[LM.i32, "B"].const, Y: LM.gmem1d[LM.f32, "B"], B: LM.i32, V: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(LABEL, 0, V)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            label = lm.ld(LABEL, t.b)
            mine = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=0.0)
            for p in lm.range(lm.cdiv(V, 256)):
                x = lm.load(X, coords=(p * 256, t.b), shape=(256,), clip=True)
                mine = mine + lm.where(lm.iota(x, 0, base=p * 256) == label, x, 0.0)
            lm.store(Y, lm.sum(mine, axis=1), coords=(t.b,))
'''

PAGE = Page(
    code="D043",
    title="positions that do not move with their tile",
    statement="Where a tile moves along an axis with a tile's field or a round, the positions of its elements that are compared with a number of arguments or memory, or rows with columns, start where the tile does (and not a whole tile away), and so do those of which the least that a round chooses is kept from round to round.",
    why="`lm.iota(x, 0)` counts from 0 in every tile: compared with a length or a label it selects the same elements of each, right for the first tile and for tests of one.",
    failing=edit(_PICK, ("lm.iota(x, 0, base=p * 256)", "lm.iota(x, 0)")),
    passing=_PICK,
    limits="Decided for choices (`lm.where`) among what products and loads made whose loads are known, by the rounds and the tile's fields that their coordinates, or tables in them, depend on. Else for positions `like=` what a load brought, and for masks of loads and stores, where the coordinate steps by whole tiles and the number that is compared is the axis's extent or one that memory holds (or the least of such and others), read by another number than the one that moves the tile.",
)

_COMPARED = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})


def check(program: Program) -> Iterator[Fault]:
    if "iota" not in mentions(program):
        return
    for s in sites(program).of("load", "store"):
        if s.op.operands.get("mask") is not None and (found := _masked(program, s)) is not None:
            yield found
    if "where" in mentions(program):
        yield from _kept(program)
        for s, still in still_in_products(program):
            if not any(f.facts.get("role") == s.role.name for f in ragged_lengths(program)):  # told there, with the length
                yield _in_product(s, still)
            return
    of_op, having = nodes(program), holding(program)
    comparing = frozenset[int]().union(*(having[op] for op in having.keys() & _COMPARED))
    for s in sites(program).ops:
        for n in of_op[s.op.id] if s.op.id in comparing else ():
            if n.op in _COMPARED and n.args[0].op in ("iota", "var") and not isinstance(n.args[1].type, FragT) and isinstance(n.args[0].type, FragT) and (fault := _compared(program, s, n)) is not None:
                yield fault
                break


def _compared(program: Program, s: Site, n: Expr) -> Fault | None:
    """A comparison of the positions of what a load brought."""
    role = s.role.name
    iota = defined(program, role, n.args[0])
    if iota.op != "iota":
        return None
    load = _brought(program, role, iota.args[0])
    run = run_of(program, role, iota)
    if load is None or run is None:
        return None
    coords = load.op.operands["coords"]
    assert isinstance(coords, tuple)  # as of every load
    t = load.op.type
    axis = 0 if not isinstance(t, FragT) or t.rank == 1 or iota.attrs.get("axis") == 1 else 1
    if axis >= len(coords) or isinstance(coords[axis].type, FragT):
        return None
    resolve = resolver_of(program, role)
    ahead, live = linear(Expr("sub", (resolve(coords[axis]), run[0])))
    if ahead and not live and ahead % covered(load.op, axis) == 0 and not _loaded_there(program, load, axis, run[0]) and _plain(resolve(n.args[1]), extent_along(program, load.op, axis)):
        tiles = abs(ahead) // covered(load.op, axis)
        message = f"these positions are those of the tile {tiles} {'before' if ahead > 0 else 'behind'} the one that was loaded, at `{spoken(coords[axis])}`"
        return Fault("D043", message, n.span if n.span.line else s.op.span, ((load.op.span, "loaded here"),), f"count from where the tile starts: `base={spoken(coords[axis])}`", (), {"role": role, "axis": axis})
    term = _still(program, load, resolve(coords[axis]), axis, run[0], resolve(n.args[1]))
    if term is None:
        return None
    return _fault(load, axis, term, n.span if n.span.line else s.op.span, coords[axis])


def _kept(program: Program) -> Iterator[Fault]:
    """The least position of a round's chosen elements, kept from round to round, where positions start at the same number in all of them."""
    for s in sites(program).of("reduce_across", "compute"):
        x = s.op.operands.get("x" if s.op.name == "reduce_across" else "value")
        x = x.args[0] if isinstance(x, Expr) and s.op.name == "compute" and x.op == "reduce" else x
        loop = s.loops[-1] if s.loops and s.loops[-1].kind != "tiles" else None
        kind = s.op.attrs.get("op") if s.op.name == "reduce_across" else getattr(s.op.operands["value"], "attrs", {}).get("op")
        if loop is None or not isinstance(x, Expr) or x.op != "where" or kind not in ("min", "max") or len(s.targets) != 1 or not _several(loop):
            continue
        role = s.role.name
        run = next((r for a in x.args[1:] if isinstance(a.type, FragT) and (r := run_of(program, role, a)) is not None), None)
        if run is None or run[0].op not in ("const", "param") or not _carried(program, s, loop):
            continue
        for load in (y for y in sites(program).of("load") if y.role is s.role and y.loops and y.loops[-1] is loop and isinstance(y.op.operands.get("coords"), tuple) and _feeds(program, role, y, x.args[0])):
            coords = load.op.operands["coords"]
            assert isinstance(coords, tuple)  # asked above
            resolve = resolver_of(program, role)
            if not isinstance(coords[0].type, FragT) and linear(resolve(coords[0]))[1].get(f"?{loop.var}") == covered(load.op, 0) == run[1]:
                yield _fault(load, 0, loop.var, x.span if x.span.line else s.op.span, coords[0])
                return


def _carried(program: Program, s: Site, loop: For) -> bool:
    """Whether a choice keeps a result over the rounds of a loop."""
    for y in sites(program).of_role(s.role.name):
        value = y.op.operands.get("value")
        if y.op.name == "compute" and isinstance(value, Expr) and value.op == "where" and len(y.targets) == 1 and loop in y.loops:
            names = {str(a.attrs["name"]) for a in value.args[1:] if a.op == "var"}
            if names == {s.targets[0], y.targets[0]}:
                return True
    return False


def _feeds(program: Program, role: str, load: Site, e: Expr, depth: int = 6) -> bool:
    """Whether what a load brought is in an expression, under whatever names."""
    for n in e.parts():
        if n.op == "var" and isinstance(n.type, FragT):
            if n.attrs["name"] in load.targets:
                return True
            bound = sites(program).results.get((role, str(n.attrs["name"])), ())
            value = bound[0].op.operands.get("value" if bound[0].op.name == "compute" else "x") if len(bound) == 1 else None
            if depth and isinstance(value, Expr) and _feeds(program, role, load, value, depth - 1):
                return True
    return False


def _brought(program: Program, role: str, e: Expr) -> Site | None:
    """The load that filled a place, casts in between."""
    for _ in range(6):
        if e.op == "cast":
            e = e.args[0]
            continue
        if e.op != "var":
            return None
        bound = sites(program).results.get((role, str(e.attrs["name"])), ())
        if len(bound) != 1:
            return None
        if bound[0].op.name == "load":
            return bound[0] if isinstance(bound[0].op.operands.get("coords"), tuple) else None
        deeper = defined(program, role, e)
        if deeper is e:
            return None
        e = deeper
    return None


def _masked(program: Program, s: Site) -> Fault | None:
    """A mask of an access whose end does not follow the coordinate."""
    coords, resolve = s.op.operands["coords"], resolver_of(program, s.role.name)
    assert isinstance(coords, tuple)  # as of every load and store
    mask = s.op.operands.get("mask")
    assert isinstance(mask, Expr)  # asked by the caller
    part = defined(program, s.role.name, mask)
    if part.op not in ("lt", "le") or isinstance(part.args[1].type, FragT):
        return None
    run = run_of(program, s.role.name, part.args[0])
    for axis, _ in mask_ends(program, s)[0]:
        if run is None or axis >= len(coords) or isinstance(coords[axis].type, FragT):
            continue
        term = _still(program, s, resolve(coords[axis]), axis, run[0], resolve(part.args[1]))
        if term is not None:
            return _fault(s, axis, term, mask.span if mask.span.line else s.op.span, coords[axis])
    return None


def _still(program: Program, load: Site, at: Expr, axis: int, base: Expr, other: Expr) -> str | None:
    """What moves the tile by its length while neither the positions nor what they are compared with depend on it; None where all is well."""
    if not _plain(other, extent_along(program, load.op, axis)) or base.op not in ("const", "param"):
        return None
    size = covered(load.op, axis)
    read = {n.attrs["name"] for n in other.parts() if n.op in ("var", "field")}
    for name, step in linear(at)[1].items():
        loop = next((x for x in load.loops if name == f"?{x.var}"), None)
        field = name.removeprefix("tile.")
        if size > 1 and step % size == 0 and (name.startswith("tile.") or loop is not None) and not read & {field, loop.var if loop is not None else ""} and _several(loop):
            return name
    return None


def _loaded_there(program: Program, load: Site, axis: int, base: Expr) -> bool:
    """Whether another load brings the tile that starts at a number: positions may then be those of its elements, whatever gives them their shape."""
    resolve = resolver_of(program, load.role.name)
    others = [s for s in sites(program).of("load") if s is not load and s.role is load.role and s.op.attrs.get("tensor") == load.op.attrs.get("tensor") and isinstance(s.op.operands.get("coords"), tuple)]
    return any(linear(Expr("sub", (resolve(s.op.operands["coords"][axis]), base))) == (0, {}) for s in others)  # type: ignore[index]  # a tuple, asked above


def _several(loop: For | None) -> bool:
    return loop is None or loop.lo is None or loop.hi is None or loop.hi.op != "const" or loop.hi.attrs["value"] != 1


def _plain(e: Expr, extent: str | int | None) -> bool:
    """Whether a number is the axis's extent or one that memory holds, but for a constant: where the axis has rows of other things, an argument may be their length."""
    if e.op in ("add", "sub") and e.args[1].op == "const":
        e = e.args[0]
    if e.op == "min":  # where a part of the axis ends
        return any(_plain(a, extent) for a in e.args)
    return e.op == "ld" or (e.op == "param" and e.attrs["name"] == extent)


def _fault(load: Site, axis: int, term: str, span: Span, coord: Expr) -> Fault:
    moves = written(term.removeprefix("?").removeprefix("tile."))
    message = f"these positions do not follow the tile: they start at the same number in each, and `{spoken(coord)}` moves it with `{moves}`"
    related = ((load.op.span, "the tile is read or written here"),) if load.op.span != span else ()
    return Fault("D043", message, span, related, f"count from where the tile starts: `base={spoken(coord)}`", (), {"role": load.role.name, "axis": axis})


def _in_product(s: Site, still: Still) -> Fault:
    """Positions of what a product made."""
    coords = still.origin.load.op.operands["coords"]
    assert isinstance(coords, tuple)  # as of every origin
    at = still.positions.span if still.positions.span.line else s.op.span
    fault = _fault(still.origin.load, still.origin.axis, still.moves.rpartition(".")[2], at, coords[still.origin.axis])
    chosen = still.at.span if still.at.span.line else s.op.span
    related = fault.related if chosen.line == at.line else ((chosen, "they choose here"), *fault.related)
    return replace(fault, related=related, facts={**fault.facts, "role": s.role.name})
