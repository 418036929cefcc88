"""Q014: tiles start where the tensor starts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from cake_ir.fault import Fault
from cake_ir.program import Expr, If, Param, Program
from cake_ir.types import FragT
from cake_verify.analyses.affine import affine
from cake_verify.analyses.counted_terms import LOADS, counted
from cake_verify.analyses.left_out import without_offset
from cake_verify.analyses.positions import arguments, equated, parameters
from cake_verify.analyses.ragged_tiles import steps_of
from cake_verify.analyses.sites import Site, boxed, by_member, sites, stores_by_tensor
from cake_verify.analyses.taken_arms import taken_arms
from cake_verify.analyses.tape import plain_tape
from cake_verify.analyses.tensors import read_tensors
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_TWICE = '''
@cake.schedule(target="sm_90a")
def twice(lm, X: LM.gmem1d[LM.f32, "N"], Y: LM.gmem1d[LM.f32, "N"], N: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(N, 512),), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.r * 512,), shape=(512,), clip=True)
            lm.store(Y, x + x, coords=(t.r * 512,), clip=True)
'''

PAGE = Page(
    code="Q014",
    title="tiles moved past the end",
    statement="Where one operation alone loads or stores a tensor, or its sequences, tile by tile, its tiles start at the first element: not a whole tile later, with the last one outside.",
    why="A coordinate of the next tile or round leaves the first part out and brings, or stores, a last tile that is not there. Copies are clipped and filled with zeros, so that nothing else shows it.",
    failing=edit(_TWICE, ("lm.load(X, coords=(t.r * 512,)", "lm.load(X, coords=((t.r + 1) * 512,)")),
    passing=_TWICE,
    limits="An arm that memory decides about for a whole tile is looked at as if every tile took it. Tried on small arguments that keep every `lm.assume`, for coordinates that are linear in tile fields, members and loop variables and extents that are arguments, and for sequences between offsets in memory that a loop takes from end to end. Several loads of one tensor may look "
    "ahead, and a part of a tensor may be written for another launch to add to: then the last tile is inside.",
)

_STORES = frozenset({"tma_store", "store"})


def check(program: Program) -> Iterator[Fault]:
    found = list(_check(program))
    for taken in taken_arms(program) if not found else ():
        found = found or list(_check(taken))
    yield from found


def _check(program: Program) -> Iterator[Fault]:
    both = read_tensors(program)
    written = {str(stores[0].op.attrs["tensor"]) for stores in stores_by_tensor(program)}
    for names in (LOADS, _STORES):
        by: dict[str, list[Site]] = {}
        for s in sites(program).of(*names):
            if s.op.attrs.get("tensor") in program.tensors:
                by.setdefault(str(s.op.attrs["tensor"]), []).append(s)
        for name, found in ((name, alone) for name, every in by.items() for alone in _apart(program, every)):
            if len(found) == 1 and not any(isinstance(p, If) and not by_member(p.cond) for p in found[0].path) and not (name in both and name in written):
                fault = _shifted(program, found[0], program.tensors[name]) or _late(program, found[0], program.tensors[name])
                if fault is not None:
                    yield fault


def _apart(program: Program, every: list[Site]) -> list[list[Site]]:
    """The accesses of a tensor that may meet: those at different constants along an axis where all are constant are of different parts."""
    if len(every) == 1:
        return [every]
    coords = [c for s in every if isinstance(c := s.op.operands.get("coords"), tuple)]
    if len(coords) != len(every) or len({len(c) for c in coords}) != 1:
        return [every]
    fixed = [list(takewhile(lambda v: v is not None, (_constant(program, s, c[k]) for s, c in zip(every, coords, strict=True)))) for k in range(len(coords[0]))]
    by: dict[tuple[int | None, ...], list[Site]] = {}
    for i, s in enumerate(every):
        by.setdefault(tuple(values[i] for values in fixed if len(values) == len(every)), []).append(s)
    return list(by.values())


def _constant(program: Program, s: Site, e: Expr) -> int | None:
    line = None if isinstance(e.type, FragT) else affine(program, s.role.name, e)
    return line.constant if line is not None and not line.terms else None


def _late(program: Program, s: Site, tensor: Param) -> Fault | None:
    """Tiles of sequences, of which the first is left out and the last lies behind the end."""
    for r in steps_of(program, s):
        if r.late >= r.tile and r.late % r.tile == 0:
            does = "reads" if s.op.name in LOADS else "writes"
            message = f"{call(s.op)} starts {r.late} element{'s' if r.late > 1 else ''} behind the start of each sequence of `{r.offsets}`, and its last tile lies past the end: nothing {does} what comes before"
            return Fault("Q014", message, r.e.span if r.e.span.line else s.op.span, ((r.loop.head, "in this loop over the whole sequence"),), f"start at the first tile of the sequence in `{tensor.name}`",
                         without_offset(r.e), {"role": s.role.name, "tensor": tensor.name, "axis": r.axis, "found": r.late})  # fmt: skip
    return None


def _shifted(program: Program, s: Site, tensor: Param) -> Fault | None:
    coords = s.op.operands.get("coords")
    if not isinstance(coords, tuple) or len(tensor.extents) != len(coords):
        return None
    for axis, e in enumerate(coords):
        if isinstance(e.type, FragT):
            continue
        extent = tensor.extents[len(tensor.extents) - 1 - axis]
        line = affine(program, s.role.name, e) if isinstance(extent, str) else None
        if not isinstance(extent, str) or line is None or line.constant < 1:  # as mostly
            continue
        n = boxed(s.op, axis)
        if line.constant < n or line.constant % n or not line.terms or any(c <= 0 for c in line.terms.values()):
            continue
        if _always_past(program, s, extent, line.constant, line.terms):
            message = f"{call(s.op)} starts at `{extent}` = {line.constant} of `{tensor.name}`, and its last tile lies past the end: nothing {'reads' if s.op.name in LOADS else 'writes'} what comes before"
            return Fault("Q014", message, e.span if e.span.line else s.op.span, ((tensor.span, f"`{extent}` is declared here"),), f"start at the first tile of `{extent}`", without_offset(e),
                         {"role": s.role.name, "tensor": tensor.name, "axis": axis, "found": line.constant})  # fmt: skip
    return None


def _always_past(program: Program, s: Site, extent: str, constant: int, terms: dict[str, int]) -> bool:
    """Whether the last tile starts past the extent for all arguments that are tried, where the first one of the axis would be inside."""
    counts: list[tuple[int, Expr | int, int]] = []
    for name, stride in terms.items():
        found = counted(program, s, name)
        if found is None:
            return False
        counts.append((stride, found[0], found[1]))
    of = equated(program, extent)
    if not any(isinstance(c, Expr) and any(n.op == "param" and n.attrs["name"] in of for n in c.parts()) for _, c, _ in counts):
        return False
    names = parameters(program, [c for _, c, _ in counts if isinstance(c, Expr)]) | {extent}
    tried = 0
    for args in arguments(program, names, (3, 2 * max(terms.values()) + 1), limit=9):
        last = constant
        for stride, count, rounded in counts:
            n = count if isinstance(count, int) else plain_tape(program, (count,)).given(args)[0]
            if not isinstance(n, int) or n < 1:
                break
            last += stride * (-(-n // rounded) * rounded - 1)
        else:
            tried += 1
            if last < args.get(extent, 0):
                return False
    return tried > 1
