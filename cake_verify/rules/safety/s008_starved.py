"""S008: a wait that nobody ends."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.arrivals import arrivals
from cake_ir.derive.clusters import guarded_loads
from cake_ir.derive.structure import sites
from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Wait
from cake_ir.program import Program
from cake_ir.span import Span
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S008",
    title="a wait that nobody ends",
    statement="Every wait has somebody who still arrives: declared producers arrive on their barriers, slots that were used are released, trip counts of both ends agree.",
    why="The kernel hangs.",
    failing=edit(LOOP, ("                lm.arrive(empty, stage=s)\n", "")),
    passing=LOOP,
    sources=("HW053", "HW104",),
)


def check(program: Program) -> Iterator[Fault]:
    """Declared producers that never arrive on a barrier that somebody waits for."""
    for name, a in arrivals(program).items():
        if all([share.sites for share in a.shares]):
            continue
        waits = [s for s in sites(program) if s.op.attrs.get("barrier") == name and any(isinstance(e, Wait) for e in effects_of(s.op, program))]
        for share in a.shares:
            if share.sites or not waits or a.strangers or _reads(program, name, share.role):
                continue
            message = f"`{name}` can never complete: `{share.role}` is declared as its producer but never arrives on it"
            related = (
                (a.barrier.spans.get("prod", a.barrier.span), f"counts {share.count * a.ctas} arrivals of `{share.role}`"),
                (waits[0].op.span, f"`{waits[0].role}` waits for it here"),
            )
            facts = {"barrier": name, "role": share.role, "expected": a.count, "found": a.ctas * sum(s.count for s in a.shares if s.sites), "starved": True}
            given = any(s.sites for s in a.shares)
            where = a.barrier.spans.get("prod", a.barrier.span) if given else _likely(program, name, share.role)
            yield Fault("S008", message, where, related, facts=facts,
                        help=f"arrive on it in `{share.role}`, or take the role out of `prod`")  # fmt: skip


def _reads(program: Program, name: str, role: str) -> bool:
    """Whether the role waits for the loads whose slots the barrier frees: then the walk finds the last use, a better place."""
    fulls = {str(s.op.attrs["barrier"]) for s in guarded_loads(program).get(name, ())}
    return any(s.role == role and s.op.attrs.get("barrier") in fulls and any(isinstance(e, Wait) for e in effects_of(s.op, program)) for s in sites(program))


def _likely(program: Program, name: str, role: str) -> Span:
    """Where the missing arrival belongs: at the role's last operation on the same ring, else at the barrier's declaration."""
    ring = program.barriers[name].pipeline
    near = [
        s.op.span
        for s in sites(program)
        if s.role == role and (b := program.barriers.get(str(s.op.attrs.get("barrier")))) is not None and b.pipeline == ring
    ]
    return near[-1] if near else program.barriers[name].span
