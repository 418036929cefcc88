"""H010: named barriers fit the hardware's ids."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_ir.span import Span
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

IDS = 15
"""Ids 1 to 15; 0 is the block's own barrier."""

TARGETED = False

PAGE = Page(
    code="H010",
    title="more named barriers than ids",
    statement="Named barriers (one id each, or one a member) and turns (one a member) take at most 15 hardware ids together.",
    why="A block has 16 barriers and the first is the block's own. The assembler refuses a seventeenth only where its number is written out.",
    failing=edit(COPY, ("    with work:", "    pairs = lm.role(warps=range(4, 20), members=16)\n    own = lm.named_barrier(pairs, per_member=True)\n    with pairs:\n        lm.sync(own)\n    with work:")),
    passing=COPY,
    limits="Barriers whose lifetimes do not overlap are not folded onto one id. The hidden barrier of `arrive=\"member\"` is counted where lowering needs it.",
    sources=("HW073",),
)


def ids(program: Program) -> list[tuple[int, Span, str]]:
    """(ids, where declared, what) of everything that takes named-barrier ids."""
    out = []
    for n in program.named.values():
        members = max(program.roles[r].members for r in n.roles) if n.per_member else 1
        out.append((members, n.span, f"`{n.name}`"))
    for t in program.turns.values():
        out.append((program.roles[t.role].members, t.span, f"`{t.name}`"))
    return out


def check(program: Program) -> Iterator[Fault]:
    uses = ids(program)
    total = sum(n for n, _, _ in uses)
    if total > IDS:
        last = uses[-1]
        yield Fault("H010", f"{total} named-barrier ids are declared, a block has {IDS}", last[1], tuple((span, f"{what} takes {n}") for n, span, what in uses[:-1])[:6],
                    "share a barrier between phases that cannot overlap", (), {"expected": IDS, "found": total})  # fmt: skip
