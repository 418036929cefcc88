"""S010: a named barrier gets the wrong threads."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.acting import acting
from cake_ir.derive.structure import Site
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.ops.effects import Sync
from cake_ir.program import NamedBarrier, Program
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S010",
    title="a named barrier gets the wrong threads",
    statement="Exactly the declared roles come to a named barrier, each equally often.",
    why="The hardware counts warps, not roles: one warp too few waits for ever, one too many releases the others early.",
    failing=edit(LOOP, ("    with load:\n", "    with load:\n        lm.sync(own)\n")),
    passing=LOOP,
    sources=("HW073", "HW074", "HW075"),
)


def check(program: Program) -> Iterator[Fault]:
    """Roles that come to a named barrier without being declared for it, declared ones that never come, per-member barriers of unequal members."""
    comers: dict[str, dict[str, Site]] = {}
    for s in acting(program).get(Sync, ()):
        comers.setdefault(str(s.op.attrs.get("barrier") or s.op.attrs.get("sync")), {}).setdefault(s.role, s)
    for barrier in program.named.values():
        came = comers.get(barrier.name, {})
        strangers = [r for r in came if r not in barrier.roles]
        absent = [r for r in barrier.roles if r not in came]
        if came and absent:
            yield _declared_wrong(barrier, came, absent)
        elif strangers:
            yield _stranger(barrier, came[strangers[0]])
        sizes = sorted({program.roles[r].member_warps for r in barrier.roles})
        if barrier.per_member and len(sizes) > 1:
            message = f"the members that meet at `{barrier.name}` have unequal numbers of warps: {sizes}"
            yield Fault("S010", message, barrier.span, help="declare one barrier a role", facts={"barrier": barrier.name, "found": sizes})


def _declared_wrong(barrier: NamedBarrier, came: dict[str, Site], absent: list[str]) -> Fault:
    """Declared roles that never come: the others would wait for ever."""
    gone, roles = ", ".join(f"`{r}`" for r in absent), list(came)
    related = tuple((s.op.span, f"`{role}` comes here") for role, s in came.items())
    where = barrier.spans.get("roles")
    text = roles[0] if len(roles) == 1 else f"[{', '.join(roles)}]"
    fixes = (Fix((Edit(where, text),), "likely", f"write `{text}`"),) if where else ()
    facts = {"barrier": barrier.name, "expected": roles, "found": list(barrier.roles)}
    message = f"`{barrier.name}` counts {gone}, which never comes to it"
    return Fault("S010", message, barrier.span, related, help=f"declare who comes: {', '.join(roles)}", fixes=fixes, facts=facts)


def _stranger(barrier: NamedBarrier, s: Site) -> Fault:
    """A role that comes without being counted."""
    roles = ", ".join(f"`{r}`" for r in barrier.roles)
    message = f"`{s.role}` comes to `{barrier.name}`, which counts {roles} only"
    facts = {"barrier": barrier.name, "role": s.role, "expected": list(barrier.roles)}
    return Fault("S010", message, s.op.span, ((barrier.span, f"declared for {roles}"),), facts=facts,
                 help=f"declare it for `{s.role}` too, or use a barrier of its own")  # fmt: skip
