"""S038: stores to peer CTAs reach a CTA of the cluster, and one wait announces the bytes of the next phase."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.sends import send_barriers
from cake_ir.derive.structure import Site
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program
from cake_verify.analyses import edits
from cake_verify.analyses.trips import resolver_of
from cake_verify.analyses.words import call, view_name
from cake_verify.rule import Page

_EXCHANGE = '''
@cake.schedule(target="sm_90a")
def swap(lm, X: LM.gmem2d[LM.f32, 2, 512], Y: LM.gmem2d[LM.f32, 2, 512]):
    lm.launch(grid="tiles", cluster=(2, 1))
    pool = lm.smem(2048)
    there = pool.view(offset=0, shape=(512,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx", scope="cluster")
    sched = lm.scheduler(kind="grid", tiles=(2,), names=("m",), cluster=(2, 1))
    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            there.send(lm.load(X, coords=(0, t.m), shape=(512,)), cta=1 - lm.cta_rank(), barrier=full, stage=s)
            lm.wait(full, stage=s)
            lm.store(Y, there.load(form="vec"), coords=(0, t.m))
'''

PAGE = Page(
    code="S038",
    title="a send that does not arrive, or is waited for twice",
    statement="`cta` of `view.send` is a rank of the cluster, and not always the sender's own. A barrier on which sends complete is waited for by one operation of one role.",
    why="An address outside the cluster is an access fault. The thread behind the wait announces the bytes of the slot's next phase, once; a second wait would announce them again, and the phase would never end.",
    failing=_EXCHANGE.replace("cta=1 - lm.cta_rank()", "cta=2 - lm.cta_rank()"),
    passing=_EXCHANGE,
    sources=("HW090",),
)


def check(program: Program) -> Iterator[Fault]:
    for name, sends in send_barriers(program).items():
        if len(sends.waits) > 1:
            first, second = sends.waits[:2]
            who = f"`{first.role}`" if first.role == second.role else f"`{first.role}` and `{second.role}`"
            yield Fault("S038", f"`{name}` is waited for in {len(sends.waits)} places by {who}: the bytes of its next phase would be announced twice", second.op.span,
                        ((first.op.span, "waited for here"),), "wait once a slot, and hand the data on by another barrier", (), {"barrier": name, "found": len(sends.waits)})  # fmt: skip
        elif sends.sends and all(_to_itself(program, x) for x in sends.sends):
            s = sends.sends[0]
            ranks = program.launch.cluster[0] * program.launch.cluster[1]
            fixes = (edits.replace(s.op.spans["cta"], "1 - lm.cta_rank()"),) if ranks == 2 and "cta" in s.op.spans else ()
            yield Fault("S038", f"{call(s.op)} sends to the CTA that it comes from: no other CTA ever gets `{view_name(s.op.operands['view'])}`", s.op.spans.get("cta", s.op.span), (),  # type: ignore[arg-type]  # a view
                        "send to the rank of a peer", fixes, {"role": s.role, "barrier": name})  # fmt: skip


def _to_itself(program: Program, s: Site) -> bool:
    """Whether a send's rank is the sender's own, along all axes that the cluster has."""
    cta = s.op.operands.get("cta")
    e = resolver_of(program, s.role)(cta) if isinstance(cta, Expr) else None
    if e is None or e.op != "cta_rank":
        return False
    m, n = program.launch.cluster
    return m * n > 1 and (e.attrs.get("axis") is None or 1 in (m, n))
