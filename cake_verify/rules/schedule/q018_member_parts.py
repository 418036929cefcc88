"""Q018: what a member reads, multiplies and stores is one part of the whole, its own."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.member_parts import Meeting, MemberParts, Same
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

YIELDS = True

_HALVES = '''
@cake.schedule(target="sm_90a")
def halves(lm, A: LM.gmem3d[LM.bf16, "T", 64, 64], B: LM.tma2d[LM.bf16, 64, 256], C: LM.gmem3d[LM.f32, "T", 64, 256], T: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(64 * 256 * 2)
    b = pool.view(offset=0, shape=(64, 256), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 8), members=2)
    load = lm.role(warps=range(8, 9))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
    with work:
        for t in lm.tiles(sched):
            o = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
            a = lm.load(A, coords=(0, 0, t.t), shape=(64, 64), form="a", like=o)
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(o, a, b.cols(128 * work.index, 128).T, init=True)
            lm.mma_wait(pending=0)
            lm.store(C, o, coords=(128 * work.index, 0, t.t))
'''

PAGE = Page(
    code="Q018",
    title="another member's part",
    statement="Members that divide a result read, multiply and store parts that move with their index by the same amount along an axis.",
    why="The part of one member combined with that of another, or stored in its place, is a result with its parts exchanged; a part that does not move with the index is computed by every member and stored as if it were each one's own.",
    failing=edit(_HALVES, ("coords=(128 * work.index, 0, t.t)", "coords=(128 * (1 - work.index), 0, t.t)")),
    passing=_HALVES,
    limits="Parts that move by an amount and by as much the other way are refused wherever they meet. A part that stands still is refused where a product that is the same for all members is stored at columns of as many as it has, side by side.",
)

_AXES = ("rows", "columns", "places")


def check(program: Program) -> Iterator[Fault]:
    for role in program.roles.values():
        if role.members > 1:
            for found in MemberParts(program, role.name).found():
                yield _apart(found) if isinstance(found, Meeting) else _same(found)
                break


def _apart(found: Meeting) -> Fault:
    """Two parts of which one moves the other way."""
    s, role = found.site, found.site.role
    odd, usual = (found.one, found.other) if found.one[0] < 0 else (found.other, found.one)
    by, (_, op, span) = usual[0], odd
    what = {"combined": "what it is combined with", "multiplied": "what it is multiplied by", "stored": "what is stored there"}[found.kind]
    axis = "of the inner axis" if found.kind == "multiplied" else _AXES[found.axis]
    message = f"this moves by {odd[0]:,} {axis} from one member of `{role.name}` to the next, and {what} by {by:,}: each member has another one's part"
    related = ((usual[2], f"this moves by {by:,}"), *(((s.op.span, "they meet here"),) if s.op.span not in (span, usual[2]) else ()))
    return Fault("Q018", message, span, related, f"use the same multiple of `{role.name}.index` in both", (), {"role": role.name, "operation": call(op)})


def _same(found: Same) -> Fault:
    """A result that is every member's."""
    s, role = found.site, found.site.role
    message = f"all {role.members} members of `{role.name}` multiply the same parts, and each stores the result in `{s.op.attrs['tensor']}` as its own, {abs(found.step)} columns further"
    return Fault("Q018", message, found.product.op.span, ((s.op.span, "stored here"),), f"take a part of an operand by `{found.step} * {role.name}.index`", (), {"role": role.name})
