"""Q024: a masked access of a sequence ends where the sequence does."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses.positions import declared_values
from cake_verify.analyses.runs import mask_ends
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import canonical, linear, resolver_of, spoken
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.schedule.q014_shifted import check as moved_starts

_LARGEST = '''
@cake.schedule(target=("sm_80", "sm_90a"))
def largest(lm, X: LM.gmem1d[LM.f32, "N"], OFFS: LM.gmem1d[LM.i32, "G1"].const, Y: LM.gmem1d[LM.f32, "G"], N: LM.i32, G: LM.i32, G1: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(G1 == G + 1)
    lm.assume_values(OFFS, 0, N + 1, sorted=True)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            lo = lm.ld(OFFS, t.g)
            hi = lm.ld(OFFS, t.g + 1)
            top = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=-lm.inf)
            for i in lm.range(lm.cdiv(hi - lo, 256)):
                left = hi - lo - i * 256
                x = lm.load(X, coords=(lo + i * 256,), shape=(256,), mask=lm.in_bounds(top, left, left), fill=-lm.inf)
                top = lm.max(top, x)
            lm.store(Y, lm.reduce(top, "max", axis=1), coords=(t.g,))
'''

PAGE = Page(
    code="Q024",
    title="a mask that reaches past a sequence",
    statement="Where an access starts at a place in a sequence and its mask lets through what is left of that, place and mask end where the sequence does, whose end is read from memory.",
    why="A mask that counts one element too many, or a coordinate that is a tile ahead of its mask, reads the next sequence's elements as its own, and behind the last sequence what is no part of the tensor.",
    failing=edit(_LARGEST, ("lm.in_bounds(top, left, left)", "lm.in_bounds(top, left + 1, left + 1)")),
    passing=_LARGEST,
    limits="Decided where coordinate and number of elements add up to one number of memory and a constant, and `lm.assume_values` lets that number be the extent of the axis. Accesses with `clip` end at the tensor.",
)


def check(program: Program) -> Iterator[Fault]:
    shifted: set[int] | None = None
    for s in sites(program).of("load", "store"):
        if s.op.operands.get("mask") is not None and not s.op.attrs.get("clip") and (fault := _past(program, s)) is not None:
            if shifted is None:
                shifted = {f.span.line for f in moved_starts(program)}
            if s.op.span.line not in shifted:  # told there, with what nothing reads
                yield fault
                return


def _past(program: Program, s: Site) -> Fault | None:
    coords, tensor, resolve = s.op.operands.get("coords"), program.tensors.get(str(s.op.attrs.get("tensor"))), resolver_of(program, s.role.name)
    if not isinstance(coords, tuple) or tensor is None or len(tensor.extents) != len(coords):
        return None
    for axis, left in mask_ends(program, s)[0]:
        if axis >= len(coords) or isinstance(coords[axis].type, FragT):
            continue
        more, live = linear(Expr("add", (resolve(coords[axis]), left)))
        if more <= 0 or len(live) != 1 or [*live.values()] != [1]:
            continue
        end = next((n for e in (coords[axis], left) for n in resolve(e).parts() if n.op == "ld" and canonical(n) in live), None)
        stated = declared_values(program, str(end.attrs["tensor"])) if end is not None else None
        if end is None or stated is None:
            continue
        beyond, names = linear(resolver_of(program, "")(stated.hi))  # the values are below this
        if beyond == 1 and names == {str(tensor.extents[len(coords) - 1 - axis]): 1}:
            message = f"{call(s.op)} with this mask ends {more} element{'s' if more > 1 else ''} behind `{spoken(end)}`, where the sequence does"
            mask = s.op.operands["mask"]
            return Fault("Q024", message, s.op.spans.get("coords", s.op.span), ((mask.span if isinstance(mask, Expr) and mask.span.line else s.op.span, "what is left is counted here"),), "start where the mask counts from", (), {"role": s.role.name, "found": more})
    return None
