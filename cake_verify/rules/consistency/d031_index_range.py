"""D031: numbers that index a tensor stay inside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cake_ir.derive.structure import TURNED, conjuncts
from cake_ir.fault import Fault
from cake_ir.program import Expr, Op, Param, Program
from cake_ir.types import FragT
from cake_verify.analyses import edits, ranges
from cake_verify.analyses.positions import Position, TooMany, arguments, around, declared_values, parameters, positions, valued
from cake_verify.analyses.read_numbers import with_number
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.runs import mask_ends
from cake_verify.analyses.sites import Site, covered, sites
from cake_verify.analyses.trips import canonical, linear, resolver_of, spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_GATHER = '''
@cake.schedule(target="sm_90a")
def gather(lm, INDEX: LM.gmem1d[LM.i32, "B"].const, POOL: LM.gmem2d[LM.f32, "P", 128], OUT: LM.gmem2d[LM.f32, "B", 128], B: LM.i32, P: LM.i32):
    lm.launch(grid="tiles")
    lm.assume_values(INDEX, -1, P)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            row = lm.ld(INDEX, t.b)
            if row >= 0:
                lm.store(OUT, lm.load(POOL, coords=(0, row), shape=(1, 128)), coords=(0, t.b))
'''

PAGE = Page(
    code="D031",
    title="an index outside what it indexes",
    statement="The number that `lm.ld` reads, and coordinates that come out of a tensor with `lm.assume_values`, lie inside the declared extents for every tile and for every value that is assumed.",
    why="Indices are padded with -1, and offset arrays are read for tiles that no sequence has: the access comes before the check, and reads or writes what lies beside the tensor. "
    "Masking the value afterwards does not stop it.",
    failing=edit(_GATHER, ("            if row >= 0:\n                lm.store", "            lm.store")),
    passing=_GATHER,
    limits="Found for small arguments that keep every `lm.assume`; the message has them. Nothing is said of tensors without declared extents, of masked accesses (but of the axes of which a mask that counts elements of another axis says nothing), or where an index tensor has no `lm.assume_values` and no condition around the access compares its number with more than the extent.",
)


def check(program: Program) -> Iterator[Fault]:
    told: set[str] = set()
    for site in ranges.live(program, "load", "store", "ld", "atomic"):
        op = site.op
        tensor = program.tensors.get(str(op.attrs.get("tensor")))
        if tensor is None or tensor.kind != "gmem":
            continue
        if op.attrs.get("clip"):
            continue
        ends = _ends(program, site)
        fault = _access(program, site, tensor, ends) if tensor.name not in told and ends is not None else None
        if fault:
            told.add(tensor.name)
            yield fault


def _ends(program: Program, site: Site) -> Sequence[tuple[int, Expr]] | None:
    """By axis, how many elements the mask of an access lets through: none without a mask; None where something else than a count decides, or memory does."""
    if site.op.operands.get("mask") is None:
        return ()
    if not any(isinstance(c, Expr) and not isinstance(c.type, FragT) and c.op != "const" for c in _coords(site.op)):
        return None
    ends, unknown = mask_ends(program, site)
    return ends if ends and not unknown and not any(n.op == "ld" for _, e in ends for n in e.parts()) else None


def _coords(op: Op) -> Sequence[object]:
    """The entries of an access's coordinates."""
    coords = op.operands.get("coords")
    return coords if isinstance(coords, tuple) else ()


def _access(program: Program, site: Site, tensor: Param, ends: Sequence[tuple[int, Expr]]) -> Fault | None:
    coords = site.op.operands.get("coords")
    entries = coords if isinstance(coords, tuple) else (site.op.operands.get("i"),)
    resolve = resolver_of(program, site.role.name)
    for axis, entry in enumerate(entries):
        if not isinstance(entry, Expr) or any(k == axis for k, _ in ends) or (ends and isinstance(entry.type, FragT)):
            continue
        if isinstance(entry.type, FragT):
            fault = _gather(program, site, tensor, entry, axis)
            if fault:
                return fault
            continue
        e = resolve(entry)
        read = {str(n.attrs["tensor"]) for n in e.parts() if n.op == "ld"}
        values = [v for v in (declared_values(program, t) for t in read) if v is not None]
        if (fault := _guarded(program, site, tensor, axis, e)) is not None:
            return fault
        if len(values) < len(read) or (site.op.name != "ld" and not read) or e.op == "const":
            continue
        extent = tensor.extents[len(tensor.extents) - 1 - axis] if axis < len(tensor.extents) else None
        if (extent is None and not values) or (site.op.name == "ld" and _counted_by(program, site, e, extent)):
            continue
        decisive = [e, *(x for _, x in ends), *around(site, program), *(x for v in values for x in (v.lo, v.hi))]
        names = parameters(program, decisive) | ({extent} if isinstance(extent, str) else set())
        if isinstance(extent, str):
            names |= parameters(program, [Expr("param", (), {"name": extent})])
        offsets = prefix_tensors(program)
        shared = bool(offsets) and site.op.name == "ld" and any(n.op == "ld" and n.attrs["tensor"] in offsets for x in around(site, program) for n in x.parts())
        found = _outside(program, site, e, extent, covered(site.op, axis), names, bool(read), shared, through=[x for _, x in ends])
        if found:
            return _fault(program, site, tensor, entry, found, names, values[0].span if values else None)
    return None


def _counted_by(program: Program, site: Site, e: Expr, extent: str | int | None) -> bool:
    """Whether an index is the field of a tile of which there are as many as the extent says: it lies inside whatever that is."""
    if e.op != "field" or extent is None:
        return False
    loop = next((x for x in site.loops if x.var == e.args[0].attrs.get("name")), None)
    d = program.schedulers.get(str(loop.scheduler)) if loop is not None else None
    if d is None or d.kind == "grouped" or any([n != 1 for n in d.cluster]):  # tiles are rounded up to clusters
        return False
    count = resolver_of(program, "")(d.tiles[d.names.index(str(e.attrs["name"]))])
    return (count.op == "param" and count.attrs["name"] == extent) or (count.op == "const" and count.attrs["value"] == extent)


def _gather(program: Program, site: Site, tensor: Param, entry: Expr, axis: int) -> Fault | None:
    """A fragment of indices, loaded from a tensor whose values start below zero or end behind the axis."""
    for made in sites(program).results.get((site.role.name, str(entry.attrs.get("name"))), ()):
        stated = declared_values(program, str(made.op.attrs.get("tensor")))
        if stated is None or made.op.name != "load":
            continue
        lowest, extent = ranges.of(program, None, stated.lo).exact, tensor.extents[len(tensor.extents) - 1 - axis] if axis < len(tensor.extents) else None
        more = _above(program, stated.hi, extent) if extent is not None else 0
        if more > 0:
            return Fault("D031", f"`{spoken(entry)}` may hold {extent if more == 1 else f'{extent} + {more - 1}'}: `{tensor.name}` ends in front of it", site.op.spans.get("coords", site.op.span),
                         ((stated.span, "these values are assumed"), (made.op.span, "read here"), (tensor.span, "declared here")), f"mask the access: `mask={spoken(entry)} < {extent}`", (),
                         {"expected": extent, "tensor": tensor.name})  # fmt: skip
        if lowest is not None and lowest < 0:
            return Fault("D031", f"`{spoken(entry)}` may hold {lowest}: in front of `{tensor.name}`", site.op.spans.get("coords", site.op.span),
                         ((stated.span, "these values are assumed"), (made.op.span, "read here")), f"mask the access: `mask={spoken(entry)} >= 0`", (),
                         {"found": lowest, "tensor": tensor.name})  # fmt: skip
    return None


def _above(program: Program, end: Expr, extent: str | int, more: int = 0) -> int:
    """By how much an end (and `more`) lies behind an extent, whatever the arguments are; 0 where that is not known."""
    size = Expr("const", (), {"value": extent}) if isinstance(extent, int) else Expr("param", (), {"name": extent})
    constant, terms = linear(resolver_of(program, "")(Expr("sub", (end, size))))
    return 0 if terms else constant + more


def _guarded(program: Program, site: Site, tensor: Param, axis: int, e: Expr) -> Fault | None:
    """A number from memory of which only the conditions around say where it lies, and not inside the axis."""
    reads = [n for n in e.parts() if n.op == "ld"]
    if len(reads) != 1 or declared_values(program, str(reads[0].attrs.get("tensor"))) is not None or axis >= len(tensor.extents):
        return None
    offset, terms = linear(Expr("sub", (e, reads[0])))
    extent, text = tensor.extents[len(tensor.extents) - 1 - axis], canonical(reads[0])
    resolve = resolver_of(program, site.role.name)
    branches = site.branches()
    guards = [c for p, arm in branches if arm for c in conjuncts(p.cond)]
    for c in (*[c for c in guards if c.op == "eq"], *[p.cond for p, arm in branches if not arm and p.cond.op == "ne"]):
        if (fault := _equal(program, site, tensor, e, reads[0], c)) is not None:
            return fault
    if terms:
        return None
    for c in guards:
        if c.op not in _COMPARED:
            continue
        a, b = (resolve(x) for x in c.args)
        op = c.op
        if canonical(b) == text:
            a, b, op = b, a, TURNED[op]
        if canonical(a) != text:
            continue
        above = _above(program, b, extent, offset + (op == "le") + covered(site.op, axis) - 1) if op in ("lt", "le") else 0
        below = ranges.of(program, None, b).exact if op in ("gt", "ge") else None
        if above > 0 or (below is not None and below + offset + (op == "gt") < 0):
            where = f"behind the end of `{tensor.name}`" if above > 0 else f"in front of `{tensor.name}`"
            fixes = (edits.replace(c.span, f"{spoken(c.args[0])} {_OTHER[c.op]} {spoken(c.args[1])}"),) if above == 1 and not offset and c.op in _OTHER and c.span.line else ()
            return Fault("D031", f"`{spoken(c)}` lets through a number {where}", c.span if c.span.line else site.op.span,
                         ((site.op.span, "used here as a coordinate"), (tensor.span, "declared here")), "compare with the extent: an index is below it, and not negative",
                         fixes, {"tensor": tensor.name, "axis": axis})  # fmt: skip
    return None


def _equal(program: Program, site: Site, tensor: Param, e: Expr, read: Expr, c: Expr) -> Fault | None:
    """A coordinate in front of the tensor wherever a condition holds that says what the number is: one that stands for nothing, most often."""
    resolve = resolver_of(program, site.role.name)
    a, b = (resolve(x) for x in c.args)
    if canonical(b) == canonical(read):
        a, b = b, a
    value = ranges.of(program, None, b).exact if canonical(a) == canonical(read) else None
    if value is None:
        return None
    known = with_number(e, read, value)
    found = _outside(program, site, known, None, 1, parameters(program, [known, *around(site, program)]), False, False, free=True)
    if found is None:
        return None
    return Fault("D031", f"here `{spoken(c.args[0])}` is {value}, which places this access in front of `{tensor.name}`", site.op.spans.get("coords", site.op.spans.get("i", site.op.span)),  # type: ignore[arg-type]  # a span, one of the three
                 ((c.span if c.span.line else site.op.span, "under this condition"), (tensor.span, "declared here")), "exchange the arms, or compare the other way round",
                 (), {"tensor": tensor.name, "found": value})  # fmt: skip


_COMPARED = ("lt", "le", "gt", "ge")
_OTHER = {"le": "<", "ge": ">"}


def _outside(program: Program, site: Site, e: Expr, extent: str | int | None, n: int, names: set[str], reads: bool, shared: bool, free: bool = False,
             through: Sequence[Expr] = ()) -> tuple[Position, int, int | None] | None:
    """A position at which the coordinate leaves the tensor, and the mask lets an element `through`: (where, the coordinate, the extent)."""
    value, some = valued(program, e), [valued(program, x) for x in through]
    for args in arguments(program, names, limit=8):
        size = args.get(extent) if isinstance(extent, str) else extent
        # Memory holds the least values that are stated, or the greatest; offsets around the access may also share all there is.
        for high, apart in ((False, False), *(((True, False),) if reads else ()), *(((True, True),) if shared else ())):
            try:
                for p in positions(program, site, args, high, free, apart):
                    v = value(p)
                    if isinstance(v, int) and (v < 0 or (size is not None and v + n > size)) and all(isinstance(k := x(p), int) and k > 0 for x in some):
                        return p, v, size
            except TooMany:
                continue
    return None


def _fault(program: Program, site: Site, tensor: Param, entry: Expr, found: tuple[Position, int, int | None], names: set[str], stated: object) -> Fault:
    p, v, size = found
    where = p.shown(names)
    range_ = f"`{tensor.name}` has {size}" if v >= 0 else f"in front of `{tensor.name}`"
    related = ((tensor.span, "declared here"), *(((stated, "these values are assumed"),) if stated is not None else ()))
    return Fault(
        "D031", f"`{spoken(entry)}` is {v} for {where}: {range_}", site.op.spans.get("coords", site.op.spans.get("i", site.op.span)), related,  # type: ignore[arg-type]  # a span, one of the three
        "put the access under a check, mask it, or state with `lm.assume` what keeps it inside", (), {"found": v, "expected": size, "tensor": tensor.name},
    )  # fmt: skip
