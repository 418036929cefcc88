"""S028: what is written is never read."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S028",
    title="what is written is never read",
    statement="Every operation that writes shared memory writes something that is read in some run, and so is every slice of it where readers take slices; members that store to one place in turn do not all write over what the one before has left unread; in global memory no tile writes over what another tile has written and nothing has read.",
    why="A value that nobody reads means that a read, a store or a stage is missing.",
    failing=edit(LOOP, ("            c.tma_store(C, coords=(t.n * 128, t.m * 64))\n", "            lm.store(D, acc, coords=(t.n * 128, t.m * 64))\n"), ("C: LM.tma2d[LM.bf16]", "D: LM.gmem2d[LM.f32]")),
    passing=LOOP,
    limits="In shared memory decided for whole operations over all runs: one iteration whose value is unused is not reported. Slices are looked at where all readers take them by constants, members and loops of a "
    "fixed length, and are of one size; a part that only its writer could need, one slice of a copy taken once, and columns beyond the tensor may stay unread. In global memory looked at where a launch also reads the tensor, or writes it at several places.",
)
