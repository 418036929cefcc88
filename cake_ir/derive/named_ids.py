"""Hardware ids and thread counts of named barriers: what `bar.sync id, count` needs. Id 0 is the CTA's own barrier."""

from __future__ import annotations

from cake_ir.derive.issue import issue_roles
from cake_ir.derive.member_meetings import idle_releases
from cake_ir.derive.structure import sites
from cake_ir.fact import fact
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Arrive, Flag, Issue, Touch
from cake_ir.program import Program
from cake_ir.record import record


@record()
class NamedId:
    """One declared barrier's hardware ids: member i uses `first + i` (`ids` of them; one where all meet), each with `threads` threads.

    `kind` is `named`, `turns`, or `member` for the hidden barrier in front of an `arrive="member"` and around flags.
    """

    name: str
    kind: str
    first: int
    ids: int
    threads: int


def needs_member_barrier(program: Program, role: str) -> bool:
    """Whether an `arrive="member"` of `role` needs its warps to meet first: they touch shared memory with ordinary loads or stores, or
    tensor memory, of which every warp reads and writes lanes of its own, or a path leads to the release without a product.

    Slots that only tensor cores read are released by one thread after the wait for the group, which all warps have joined.
    """
    return any(s.role == role and s.op.id in idle_releases(program) for s in sites(program)) or any(
        (isinstance(e, Touch) and e.space == "smem" and e.proxy == "generic") or (isinstance(e, Issue) and e.engine in ("tmem_ld", "tmem_st"))
        for s in sites(program) if s.role == role for e in effects_of(s.op, program)
    )  # fmt: skip


@fact
def named_ids(program: Program) -> tuple[NamedId, ...]:
    """All named-barrier ids in allocation order: the author's, then turns, then hidden ones. More than 15 do not exist."""
    out: list[NamedId] = []
    at = 1
    for barrier in program.named.values():
        roles = [program.roles[r] for r in barrier.roles]
        if barrier.per_member:
            each = NamedId(barrier.name, "named", at, sum(r.members for r in roles), 32 * roles[0].member_warps)
        else:
            each = NamedId(barrier.name, "named", at, 1, 32 * sum(r.warps for r in roles))
        out.append(each)
        at += each.ids
    for turns in program.turns.values():
        role = program.roles[turns.role]
        out.append(NamedId(turns.name, "turns", at, role.members, 64 * role.member_warps))
        at += role.members
    hidden = {
        s.role for s in sites(program)
        if any(isinstance(e, Arrive) for e in effects_of(s.op, program)) and program.barriers[str(s.op.attrs["barrier"])].arrive == "member"
    }  # fmt: skip
    flags = {s.role for s in sites(program) if any(isinstance(e, Flag) for e in effects_of(s.op, program))} - issue_roles(program)
    for name in program.roles:
        role = program.roles[name]
        if role.member_warps > 1 and (name in flags or (name in hidden and needs_member_barrier(program, name))):
            out.append(NamedId(name, "member", at, role.members, 32 * role.member_warps))
            at += role.members
    return tuple(out)
