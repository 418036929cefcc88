"""S009: not every role comes to the cluster barrier."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.acting import acting
from cake_ir.fault import Fault
from cake_ir.ops.effects import ClusterSync
from cake_ir.program import Program
from cake_verify.rule import Page
from cake_verify.rules.examples import MULTICAST, edit

PAGE = Page(
    code="S009",
    title="not every role comes to the cluster barrier",
    statement="All threads of the cluster come to `lm.cluster_sync()` equally often.",
    why="The barrier counts every thread of every CTA; a role that does not come makes the others wait for ever.",
    failing=edit(MULTICAST, ("            lm.store(C, acc,", "            lm.cluster_sync()\n            lm.store(C, acc,")),
    passing=MULTICAST,
    sources=("HW095",),
)


def check(program: Program) -> Iterator[Fault]:
    """Roles that never come to a cluster barrier to which another role comes."""
    comers = acting(program).get(ClusterSync, ())
    if not comers:
        return
    for block in program.body:
        if all(s.role != block.role for s in comers):
            message = f"`{comers[0].role}` waits for all threads of the cluster, and `{block.role}` never comes to a cluster barrier"
            facts = {"role": block.role, "waits": comers[0].role}
            yield Fault("S009", message, comers[0].op.span, ((block.head, f"`{block.role}` has no `lm.cluster_sync()`"),), facts=facts,
                        help="put it where every role comes by equally often, or use a barrier of the roles that need it")  # fmt: skip
