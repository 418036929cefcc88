"""Q009: every role that others count on has a block."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_ir.span import Span
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

ROOT = True

PAGE = Page(
    code="Q009",
    title="a role without a block",
    statement="A role that a barrier, a named barrier or a turn names has a `with role:` block; a role that nothing names is a warning.",
    why="Warps without a program never arrive, and who waits for them waits for ever.",
    failing=edit(TILE, ("    with load:\n        s = lm.step(ring)\n        a.tma_load(A, coords=(0, 0), stage=s, barrier=full)\n        b.tma_load(B, coords=(0, 0), stage=s, barrier=full)\n", "")),
    passing=TILE,
)


def check(program: Program) -> Iterator[Fault]:
    present = {b.role for b in program.body}
    for role in program.roles.values():
        if role.name in present:
            continue
        named = _named_by(program, role.name)
        if named:
            yield Fault("Q009", f"role `{role.name}` has no block, but {named[0][1]}", role.span, tuple(named[:4]), f"add `with {role.name}:`", (), {"role": role.name})
        else:
            yield Fault("Q009", f"role `{role.name}` has no block: its {role.warps} warps idle", role.span, (), f"add `with {role.name}:`, or remove the role", (), {"role": role.name}, severity="warning")


def _named_by(program: Program, role: str) -> list[tuple[Span, str]]:
    out = [(b.span, f"`{b.name}` counts on it") for b in program.barriers.values() if role in b.prod or role in b.cons]
    out += [(n.span, f"`{n.name}` meets it") for n in program.named.values() if role in n.roles]
    out += [(t.span, f"`{t.name}` passes through it") for t in program.turns.values() if t.role == role]
    return out
