"""S016: data of the launch before is touched too early."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

_WAITS = edit(COPY, ("    with work:\n", "    with work:\n        lm.pdl_wait()\n"))

PAGE = Page(
    code="S016",
    title="data of the launch before is touched too early",
    statement="In a schedule that executes `lm.pdl_wait()`, every access of a tensor that is not `.const` comes after such a wait, by the same member or by one that it is ordered after.",
    why="A dependent launch may start while the kernel before it still runs: what that one writes is not there yet, and what it reads must not be overwritten.",
    failing=edit(COPY, ("        lm.store(Y, x, coords=(0,))", "        lm.pdl_wait()\n        lm.store(Y, x, coords=(0,))")),
    passing=_WAITS,
    limits="A schedule that never waits is taken for an ordinary launch; a plan that runs it with `after=\"pdl\"` is refused with Q021.",
    sources=("HW101",),
)
