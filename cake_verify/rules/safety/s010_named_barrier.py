"""S010: a named barrier gets the wrong threads."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.structure import sites
from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Sync
from cake_ir.program import Program
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S010",
    title="a named barrier gets the wrong threads",
    statement="Exactly the declared roles come to a named barrier, each equally often.",
    why="The hardware counts warps, not roles: one warp too few waits for ever, one too many releases the others early.",
    failing=edit(LOOP, ("    with load:\n", "    with load:\n        lm.sync(own)\n")),
    passing=LOOP,
    sources=("HW073", "HW075",),
)


def check(program: Program) -> Iterator[Fault]:
    """Roles that come to a named barrier without being declared for it, and per-member barriers of unequal members."""
    for s in sites(program):
        if not any(isinstance(e, Sync) for e in effects_of(s.op, program)):
            continue
        barrier = program.named.get(str(s.op.attrs.get("barrier") or s.op.attrs.get("sync")))
        if barrier is not None and s.role not in barrier.roles:
            roles = ", ".join(f"`{r}`" for r in barrier.roles)
            message = f"`{s.role}` comes to `{barrier.name}`, which counts {roles} only"
            facts = {"barrier": barrier.name, "role": s.role, "expected": list(barrier.roles)}
            yield Fault("S010", message, s.op.span, ((barrier.span, f"declared for {roles}"),), facts=facts,
                        help=f"declare it for `{s.role}` too, or use a barrier of its own")  # fmt: skip
    for barrier in program.named.values():
        sizes = sorted({program.roles[r].member_warps for r in barrier.roles})
        if barrier.per_member and len(sizes) > 1:
            message = f"the members that meet at `{barrier.name}` have unequal numbers of warps: {sizes}"
            yield Fault("S010", message, barrier.span, help="declare one barrier a role", facts={"barrier": barrier.name, "found": sizes})
