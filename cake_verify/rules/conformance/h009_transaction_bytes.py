"""H009: the bytes in flight on one barrier stay within what it counts."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.transactions import transactions
from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

MOST_BYTES = 2**20 - 1

TARGETED = False

PAGE = Page(
    code="H009",
    title="more bytes than a barrier counts",
    statement="The copies that complete one phase of a barrier bring at most 1,048,575 bytes.",
    why="The transaction count of a barrier is a signed number of 20 bits and a sign. Beyond it the count wraps: the phase never completes, or completes at once, and no assembler "
    "looks at the sum.",
    failing=edit(TILE, ("        a.tma_load(A, coords=(0, 0), stage=s, barrier=full)",
                        "        for i in lm.static_range(128):\n            a.tma_load(A, coords=(64 * i, 0), stage=s, barrier=full)")),
    passing=TILE,
    limits="Counted are the full boxes of a phase. That they also lie in different bytes is the safety gate's to say.",
    sources=("HW052",),
)  # fmt: skip


def check(program: Program) -> Iterator[Fault]:
    sets, _ = transactions(program)
    for s in sets:
        if s.bytes > MOST_BYTES:
            yield Fault("H009", f"the loads of one phase of `{s.barrier}` bring {s.bytes:,} bytes, a barrier counts at most {MOST_BYTES:,}", s.loads[0].op.span,
                        tuple((site.op.span, "in the same phase") for site in s.loads[1:4]), "step the ring inside the loop, one slot a load", (),
                        {"barrier": s.barrier, "expected": MOST_BYTES, "found": s.bytes})  # fmt: skip
