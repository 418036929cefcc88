"""S033: ordinary accesses stay inside their tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd, isfinite

from cake_ir.derive.mentions import mentions
from cake_ir.derive.structure import stated
from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, If, Operand, Param, Program
from cake_ir.types import FragT
from cake_verify.analyses import edits, ranges
from cake_verify.analyses.affine import affine
from cake_verify.analyses.dead_values import unused_results
from cake_verify.analyses.fixed_scalars import definitions
from cake_verify.analyses.left_out import without_offset
from cake_verify.analyses.outside import Outside, outside
from cake_verify.analyses.positions import arguments, declared_values, parameters
from cake_verify.analyses.ragged_tiles import Beyond, beyond_end
from cake_verify.analyses.runs import elsewhere, mask_ends, reach_of, run_of
from cake_verify.analyses.sites import Site, covered
from cake_verify.analyses.trips import linear, resolver_of, spoken, written
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

OF_VALUES = True

COMPARED = ("lt", "le", "gt", "ge")

PAGE = Page(
    code="S033",
    title="an access outside the tensor",
    statement="The elements that `lm.load`, `lm.store`, `lm.ld`, `lm.atomic` and `view.bulk_store` touch lie inside the tensor: their coordinates are not negative, and within the extents where the parameter declares them; "
    "a ragged last tile is masked, clipped, or excluded by `lm.assume`. A `view.tma_store` or `tma_reduce` may end outside its tensor, but its first element has no negative coordinate.",
    why="Unlike copies through a tensor map these accesses are not clipped: they read and write what lies beside the tensor, or fault. "
    "The copy engine clips what it writes at the far end only: the CUDA programming guide forbids a negative first coordinate for writes (reads may have one), and on an H200 every store and reduction that had one along any axis was an illegal instruction.",
    failing=edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32, 256]")),
    passing=edit(COPY, ("Y: LM.gmem1d[LM.f32]", "Y: LM.gmem1d[LM.f32, 512]")),
    limits="Decided where the access certainly leaves the tensor for some arguments, or behind the last of the sequences that offsets in memory mark off, where `lm.assume_values` says that these reach its end; a whole tile of rows of a group is told where the text asks elsewhere how many the group has (`t.rows`). A condition on memory is taken to keep in what moves with it, and nothing else. Without declared extents the launcher compares the box that the grid can touch with the real tensor.",
)


def check(program: Program) -> Iterator[Fault]:
    through: dict[int, Fault] = {}
    for site in ranges.live(program):
        op = site.op
        tensor = program.tensors.get(str(op.attrs.get("tensor")))
        if tensor is None or tensor.kind != "gmem" or op.name not in ("load", "store", "ld", "atomic", "bulk_store"):
            continue
        coords = op.operands.get("coords")
        entries = coords if isinstance(coords, tuple) else (op.operands.get("i"),)
        ragged = beyond_end(program, site, tensor) if op.name in ("load", "store") else None
        if ragged is not None:
            yield _behind(site, tensor, ragged)
            continue
        if op.attrs.get("clip"):
            if op.name == "store" and (fault := next((f for axis, e in enumerate(entries) if isinstance(e, Expr) and (f := _in_front(program, site, tensor, axis, e)) is not None), None)) is not None:
                yield fault
            continue
        grouped = any(loop.kind == "tiles" and program.schedulers[str(loop.scheduler)].kind == "grouped" for loop in site.loops)
        if op.operands.get("mask") is not None:
            if not grouped or op.name == "load":  # whose rows a grouped store writes is for Q001
                yield from _masked(program, site, tensor, entries, through)
            continue
        if grouped and op.name == "load" and (group := _past_group(program, site, tensor, entries)) is not None:
            yield group
            continue
        bounds = {n.op for loop in site.loops for e in (loop.lo, loop.hi) if e is not None for n in resolver_of(program, site.role.name)(e).parts()}
        told = "ld" in bounds
        if grouped or told or "field" in bounds or any(isinstance(s, If) for s in site.path):  # rounds counted from the tile keep accesses inside as a branch does
            found = outside(program, site, tensor) if op.name != "bulk_store" else None
            if found is not None:
                _gather(through, site, tensor, found)
            rounds = next((f for axis, e in enumerate(entries) if isinstance(e, Expr) and (f := _rounds(program, site, tensor, axis, e)) is not None), None) if found is None else None
            if rounds is not None:
                yield rounds
            if found is not None or rounds is not None or not (grouped or told) or _held(program, site, entries):
                continue
        for axis, e in enumerate(entries):
            if not isinstance(e, Expr):
                continue
            run = (e, covered(op, axis)) if not isinstance(e.type, FragT) else reach_of(program, site.role.name, e)
            fault = _axis(program, site, tensor, axis, *run) if run is not None else None
            if fault:
                yield fault
                break
        else:
            placed = any(isinstance(e, Expr) and isinstance(e.type, FragT) for e in entries)
            if placed and not any(isinstance(s, If) for s in site.path) and op.name != "bulk_store" and (found := outside(program, site, tensor)) is not None:
                _gather(through, site, tensor, found)
    idle = {f.facts.get("role") for f in unused_results(program) if "mask" in f.message} if through else set()  # what an unused mask was to keep out is told there
    yield from (f for f in through.values() if f.facts.get("role") not in idle)


def _past_group(program: Program, site: Site, tensor: Param, entries: Sequence[Operand | None]) -> Fault | None:
    """A whole tile of rows from a group's tile on, in a text that asks elsewhere how many of them the group has: the last tile of the last group has fewer, and so has the tensor."""
    if not any(n.attrs["name"] == "rows" for n in mentions(program).get("field", ())):
        return None
    resolve = resolver_of(program, site.role.name)
    for axis, e in enumerate(entries):
        if isinstance(e, Expr) and not isinstance(e.type, FragT) and axis < len(tensor.extents) and isinstance(tensor.extents[len(tensor.extents) - 1 - axis], str) and covered(site.op, axis) > 1:
            constant, terms = linear(resolve(e))
            if terms.get("tile.row0") == 1 and constant >= 0 and all(t == "tile.row0" or t.startswith("role_index") for t in terms):
                return Fault("S033", f"the last tile of the last group has fewer than {covered(site.op, axis)} rows, this reads as many of `{tensor.name}`", site.op.span, ((tensor.span, "declared here"),),
                             "mask the access by `t.rows`, or use `clip=True`", (edits.add_argument(site.op.span, "clip=True"),), {"role": site.role.name, "tensor": tensor.name, "axis": axis})  # fmt: skip
    return None


def _held(program: Program, site: Site, entries: Sequence[Operand | None]) -> bool:
    """Whether a branch around the access looks at the tile that its coordinates follow: what it lets through was looked at as a whole."""
    role = site.role.name
    resolve = resolver_of(program, role)
    moved = {t for e in entries if isinstance(e, Expr) and not isinstance(e.type, FragT) for t in linear(resolve(e))[1] if t.startswith("tile.")}
    return any(not moved.isdisjoint(t for n in resolve(p.cond).parts() if n.op in COMPARED for t in linear(Expr("sub", n.args))[1]) for p in site.path if isinstance(p, If))


def _masked(program: Program, site: Site, tensor: Param, entries: Sequence[Operand | None], through: dict[int, Fault]) -> Iterator[Fault]:
    """A masked access: along the axes of which the mask says where they end, and along those of which it says nothing."""
    ends, unknown = mask_ends(program, site)
    if len(entries) != len(tensor.extents):
        return
    resolve = resolver_of(program, site.role.name)
    along = elsewhere(program, site, ends)
    if along is not None:
        yield _other_axis(site, tensor, *along)
        return
    for axis, e in enumerate(entries):
        extent = tensor.extents[len(entries) - 1 - axis]
        if axis in unknown or not isinstance(e, Expr):
            continue
        run = (resolve(e), covered(site.op, axis)) if not isinstance(e.type, FragT) else run_of(program, site.role.name, e)
        if run is None:
            continue
        mine = [end for k, end in ends if k == axis]
        size = Expr("const", (), {"value": extent}) if isinstance(extent, int) else Expr("param", (), {"name": extent})
        fault = None if mine else _axis(program, site, tensor, axis, *run)
        if fault is not None and not any(isinstance(p, If) for p in site.path):
            yield fault
            return
        if fault is not None or (mine and all(_beyond(program, tensor, Expr("sub", (Expr("add", (run[0], end)), size))) for end in mine)):
            let = outside(program, site, tensor)
            if let is not None:
                _gather(through, site, tensor, let)
                return


def _other_axis(site: Site, tensor: Param, axis: int, other: int) -> Fault:
    """A mask that counts what is left along another axis than the one that it stands for."""
    names = [f"`{x}`" if isinstance(x := tensor.extents[len(tensor.extents) - 1 - k], str) else f"axis {k}" for k in (axis, other)]
    coords = site.op.operands["coords"]
    at, there = (spoken(coords[k]) for k in (axis, other))  # type: ignore[index,arg-type]  # a tuple of expressions, see `elsewhere`
    message = f"this mask lets through what is left along {names[1]} from `{there}` on, and the elements that it leaves out run along {names[0]}, from `{at}` on"
    return Fault("S033", message, site.op.spans.get("mask", site.op.span), ((site.op.spans.get("coords", site.op.span), "rows run along the second axis, columns along the first"), (tensor.span, "extents are outermost first here")),
                 "place the rows by `lm.iota` where they belong, or give the tensor two axes", (), {"role": site.role.name, "tensor": tensor.name, "axis": axis})  # fmt: skip


def _beyond(program: Program, tensor: Param, past: Expr) -> bool:
    """Whether what a mask lets through may end behind the extent, from which it is `past` at most. Of arguments that may belong together nothing is
    said, but for the extent of another axis."""
    constant, terms = linear(past)
    for name, k in [*terms.items()]:
        stated = declared_values(program, name.partition("[")[0]) if "[" in name else None
        if stated is None:
            continue
        more, other = linear(resolver_of(program, "")(stated.hi if k > 0 else stated.lo))
        constant += k * (more - (k > 0))
        del terms[name]
        for t, n in other.items():
            terms[t] = terms.get(t, 0) + k * n
    left = [t for t, n in terms.items() if n]
    return all(t.startswith(("tile.", "?", "role_index")) or t in tensor.extents for t in left) and (constant > 0 or bool(left))


_SHOWN = 3
"""Further accesses that one condition lets through, beside the first."""


def _gather(through: dict[int, Fault], site: Site, tensor: Param, found: Outside) -> None:
    """One fault for all accesses that a branch (or a loop without one) lets through: the condition is wrong once."""
    by = id(found.guard or (site.loops[-1] if site.loops else site.op))
    first = through.setdefault(by, fault := _guarded(site, tensor, found))
    if first is not fault and len(first.related) < 3 + _SHOWN:
        through[by] = replace(first, related=(*first.related, (site.op.span, f"leaves `{tensor.name}` too")))


def _behind(site: Site, tensor: Param, found: Beyond) -> Fault:
    """An access that goes on behind the end of the last sequence."""
    what = "this mask lets elements" if found.mask is not None else f"{call(site.op)} touches elements"
    message = f"{what} behind the end of a sequence of `{found.offsets}`{' through' if found.mask is not None else ''}: the last one ends where `{tensor.name}` does"
    span = found.mask.span if found.mask is not None and found.mask.span.line else site.op.span
    fixes = without_offset(found.mask.args[1]) if found.mask is not None and found.by == 1 and found.mask.op in COMPARED else () if found.mask is not None else (edits.add_argument(site.op.span, "clip=True"),)
    around = ((found.loop.head, "in this loop over the sequence"),) if found.loop is not None else ()
    related = ((site.op.span, "touched here"),) if span != site.op.span else ()
    return Fault("S033", message, span, (*related, *around, (tensor.span, "declared here")),
                 "let through what the sequence has left, counted from the same element as the coordinate, or use `clip=True`", fixes,
                 {"role": site.role.name, "tensor": tensor.name, "axis": found.axis})  # fmt: skip


def _guarded(site: Site, tensor: Param, found: Outside) -> Fault:
    """An access that its conditions let through although it leaves the tensor."""
    where = f"an element in front of `{tensor.name}`" if found.last < 0 else f"element {found.last} along axis {found.axis} of `{tensor.name}`"
    message = f"{call(site.op)} touches {where}, which has {found.extent} there, for {found.given}"
    span, related = site.op.span, [(tensor.span, "declared here")]
    fixes: tuple[Fix, ...] = ()
    if found.loose is not None:
        left, right = (spoken(a) for a in found.loose.args)
        fixes = (edits.replace(found.loose.span, f"{left} {found.tighter} {right}"),)
        span, related = found.loose.span, [(site.op.span, "let through here"), *related]
    elif found.guard is not None:
        related.insert(0, (found.guard.head, "under this condition"))
    return Fault("S033", message, span, tuple(related), "mask the access, or use `clip=True`" if found.guard is None else "let the condition keep out what lies outside, or use `clip=True`", fixes,
                 {"role": site.role.name, "tensor": tensor.name, "axis": found.axis, "expected": found.extent, "found": found.last})  # fmt: skip


def _axis(program: Program, site: Site, tensor: Param, axis: int, e: Expr, n: int) -> Fault | None:
    r = ranges.of(program, site.role.name, e)
    span = site.op.spans.get("coords", site.op.spans.get("i", site.op.span))
    if r.hi < 0 or (r.tight and r.lo < 0):
        return Fault("S033", f"coordinate {axis} of this access is {int(r.lo if r.tight else r.hi)}, in front of `{tensor.name}`", span, ((tensor.span, "declared here"),), "", (), {"axis": axis})
    least = _least(program, site, e) if r.lo < 0 else 0
    if least < 0:
        return Fault("S033", f"coordinate {axis} of this access is {least} for the first tile, in front of `{tensor.name}`", span, ((tensor.span, "declared here"),), "", (), {"axis": axis})
    if not tensor.extents or axis >= len(tensor.extents):
        return None
    extent = tensor.extents[len(tensor.extents) - 1 - axis]
    if isinstance(extent, int):
        last = r.hi if r.tight else r.lo
        if isfinite(last) and int(last) + n > extent:  # whole numbers: an extent may be larger than any float
            return Fault("S033", f"elements up to {int(last) + n - 1} along axis {axis} are touched, `{tensor.name}` has {extent}", span, ((tensor.span, "declared here"),),
                         "mask the access, or use `clip=True`", (), {"axis": axis, "expected": extent, "found": int(last) + n})  # fmt: skip
        return None
    return _ragged(program, site, tensor, axis, e, extent, n)


def _in_front(program: Program, site: Site, tensor: Param, axis: int, e: Expr) -> Fault | None:
    """A member whose whole part lies in front of the tensor in the first tile, as parts are dealt from the last member on: then the last tile ends too early."""
    line = affine(program, site.role.name, e) if site.role.members > 1 and not isinstance(e.type, FragT) else None
    if line is None or line.terms.get("member", 0) >= 0 or _least(program, site, e) + covered(site.op, axis) > 0:
        return None
    return Fault("S033", f"the part of member {site.role.members - 1} ends in front of `{tensor.name}` in the first tile: nothing is left of it there", site.op.spans.get("coords", site.op.span),
                 ((tensor.span, "declared here"), (site.role.span, f"{site.role.members} members")), f"count parts by `{site.role.name}.index`", (), {"role": site.role.name, "tensor": tensor.name, "axis": axis})  # fmt: skip


def _least(program: Program, site: Site, e: Expr) -> int:
    """The least value of a coordinate that counts down in members and fixed rounds, for tile 0; 0 where that is not known."""
    line = affine(program, site.role.name, e)
    if line is None or site.path != site.loops:
        return 0
    least = line.constant
    for name, c in line.terms.items():
        if "." in name:
            if c < 0:
                return 0
        elif name == "member":
            least += min(c, 0) * (site.role.members - 1)
        else:
            loop = next((x for x in site.loops if x.var == name), None)
            lo, hi = (ranges.of(program, site.role.name, x).exact if x is not None else None for x in ((loop.lo, loop.hi) if loop is not None else (None, None)))
            if lo is None or hi is None or hi <= lo:
                return 0
            least += c * (lo if c > 0 else hi - 1)
    return least


def _ragged(program: Program, site: Site, tensor: Param, axis: int, e: Expr, extent: str, n: int) -> Fault | None:
    """The last tile of `cdiv(extent, n)` tiles of n, where nothing says that n divides the extent."""
    line = affine(program, site.role.name, e)
    if line is None or extent not in program.scalars:
        return None
    if not line.terms:
        return _longer(program, site, tensor, axis, line.constant + n, extent)
    fields = [(name, c) for name, c in line.terms.items() if "." in name]
    if len(fields) != 1:
        return None
    name, stride = fields[0]
    var, _, field = name.partition(".")
    loop = next((s for s in site.loops if s.var == var), None)
    d = program.schedulers.get(str(loop.scheduler)) if loop is not None else None
    if d is None or field not in d.names:
        return None
    tiles = resolver_of(program, "")(d.tiles[d.names.index(field)])  # also under a name
    if tiles.op == "param":  # an argument that is stated to be so many
        count, resolve = str(tiles.attrs["name"]), resolver_of(program, "")
        tiles = definitions([c for a in program.assumes for c in stated(resolve(a.cond))], [count]).get(count, tiles)
    if tiles.op != "cdiv" or tiles.args[0].attrs.get("name") != extent or tiles.args[1].attrs.get("value") != stride:
        return None
    many = ranges.of(program, None, tiles.args[0])
    sure = gcd(stride, many.mod, many.rem) if many.exact is None else gcd(stride, many.exact)  # elements that even the last tile has
    if sure == stride or (len(line.terms) == 1 and line.constant + n <= sure):
        return None
    return Fault("S033", f"the last tile along `{field}` reaches past `{extent}`, the end of `{tensor.name}`, unless {stride} divides it", site.op.span,
                 ((tensor.span, f"extent `{extent}`"), (d.spans.get("tiles", d.span), f"tiles of {stride}")),
                 f"mask the access, use `clip=True`, or state `lm.assume({extent} % {stride} == 0)`", (), {"axis": axis, "extent": extent, "tile": stride})  # fmt: skip


def _rounds(program: Program, site: Site, tensor: Param, axis: int, e: Expr) -> Fault | None:
    """The last round of `cdiv(extent, n)` rounds of n elements, whatever branches around decide: none of them looks at the round."""
    extent = tensor.extents[len(tensor.extents) - 1 - axis] if axis < len(tensor.extents) else None
    if not isinstance(extent, str) or isinstance(e.type, FragT):
        return None
    resolve = resolver_of(program, site.role.name)
    start, terms = linear(resolve(e))
    loop = next((x for x in site.loops if terms.keys() == {f"?{x.var}"} and x.lo is not None and x.hi is not None), None)
    if loop is None or loop.lo is None or loop.hi is None or start or linear(resolve(loop.lo)) != (0, {}) or any(n.attrs.get("name") == loop.var for p in site.path if isinstance(p, If) for n in p.cond.parts()):
        return None
    stride, many = terms[f"?{loop.var}"], resolve(loop.hi)
    if many.op != "cdiv" or many.args[0].attrs.get("name") != extent or many.args[1].attrs.get("value") != stride or covered(site.op, axis) < stride or ranges.of(program, None, many.args[0]).multiple_of(stride):
        return None
    return Fault("S033", f"the last round of `{written(loop.var)}` reaches past `{extent}`, the end of `{tensor.name}`, unless {stride} divides it", site.op.span,
                 ((tensor.span, f"extent `{extent}`"), (loop.head, f"rounds of {stride}")), f"mask the access, use `clip=True`, or state `lm.assume({extent} % {stride} == 0)`",
                 (edits.add_argument(site.op.span, "clip=True"),), {"axis": axis, "extent": extent, "tile": stride})  # fmt: skip


def _longer(program: Program, site: Site, tensor: Param, axis: int, end: int, extent: str) -> Fault | None:
    """An access at a number that ends behind an extent which may be shorter."""
    e = Expr("param", (), {"name": extent})
    if not 1 <= ranges.of(program, None, e).lo < end:  # nothing is said of extents of which nothing is assumed
        return None
    least = min([args[extent] for args in arguments(program, parameters(program, [e])) if extent in args], default=end)
    if least >= end:
        return None
    return Fault("S033", f"elements up to {end - 1} along axis {axis} are touched, `{tensor.name}` has {least} there for {extent} = {least}, which is assumed to be possible", site.op.span, ((tensor.span, f"extent `{extent}`"),),
                 f"mask the access, use `clip=True`, or state `lm.assume({extent} >= {end})`", (), {"axis": axis, "expected": least, "found": end})  # fmt: skip
