"""Where the CTAs of a cluster have to meet, if all that they reach each other by is `send`."""

from __future__ import annotations

from cake_ir.derive.acting import acting
from cake_ir.derive.sends import send_barriers
from cake_ir.fact import fact
from cake_ir.ops.effects import ClusterSync
from cake_ir.program import Program


@fact
def senders(program: Program) -> frozenset[str]:
    """The roles that send, where nothing else in the kernel crosses to a peer CTA and every warp has a role; else none.

    Then only these need the peers' barriers to be initialised, and need it late: the other roles start when their own CTA is ready. And nobody has to stay for a
    peer at the end: whoever has waited for all that was sent to it, which S025 asks for, is reached by nobody any more.
    """
    sends = send_barriers(program)
    blocks = [b.role for b in program.body]
    covered = sum(program.roles[r].warps for r in set(blocks)) * 32 == program.threads
    others = any(b.scope == "cluster" for name, b in program.barriers.items() if name not in sends) or ClusterSync in acting(program)
    others = others or any(op.attrs.get("multicast") or (op.name == "mma" and op.attrs.get("ctas", 1) != 1) for op in program.ops)
    others = others or any(s.kind in ("counter", "clc") for s in program.schedulers.values())
    return frozenset() if others or not covered or not all(s.waits for s in sends.values()) else frozenset(site.role for s in sends.values() for site in s.sends)
