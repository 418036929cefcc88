"""When the CTAs of a cluster have to meet: before one touches another's shared memory, and before one leaves that another may still touch."""

from __future__ import annotations

from cake_ir.derive.clusters import arrival_targets
from cake_ir.derive.pairs import paired_roles
from cake_ir.derive.sends import is_send, send_barriers
from cake_ir.derive.structure import sites
from cake_ir.fact import fact
from cake_ir.ops import effects_of
from cake_ir.ops.effects import ClusterSync
from cake_ir.program import Program


@fact
def sending_roles(program: Program) -> frozenset[str]:
    """Roles that send, where sends are all that CTAs of a cluster do to each other, and each is waited for where it lands; else none.

    Then only these roles need to know that the others' barriers are initialised, and nobody has to wait at the end: a CTA that waits for the
    bytes it is sent is there when they come, and one that has sent them from its registers may leave.
    """
    x, y = program.launch.cluster
    found = send_barriers(program)
    if x * y == 1 or not found or not all(b.waits for b in found.values()) or paired_roles(program):
        return frozenset()
    if any(s.kind not in ("grid", "static", "grouped") for s in program.schedulers.values()):
        return frozenset()  # a counter's work ring reaches into other CTAs
    if any(name not in found and arrival_targets(program, name, 0) != (0,) for name in program.barriers):
        return frozenset()
    for site in sites(program):
        if site.op.attrs.get("multicast") or any(isinstance(e, ClusterSync) for e in effects_of(site.op, program)):
            return frozenset()
    return frozenset(s.role for s in sites(program) if is_send(s, program))
