"""S007: views that share bytes are used without order between them."""

from __future__ import annotations

from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="S007",
    title="views that share bytes are used without order between them",
    statement="Accesses of the same bytes through two views are ordered like accesses through one, and what is read through one again has not been written over through another. A product's result lies apart from its operands in tensor memory.",
    why="Reusing drained stages for the epilogue is good practice, as long as every use of the old view has ended before the first of the new one.",
    failing=edit(LOOP, ("c = pool.view(offset=49152,", "c = pool.view(offset=0,")),
    passing=LOOP,
    limits="Which bytes two views share is exact, swizzles included. Values written over in order are told where one operation reads a slot before and after.",
)
