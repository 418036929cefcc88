"""Q012: the tiles of an output reach its end."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.dead_ends import dead_ends
from cake_verify.analyses.early_rounds import early_rounds
from cake_verify.analyses.rounded_down import rounded_down
from cake_verify.analyses.taken_arms import taken_arms
from cake_verify.analyses.unread_tail import unread_tails
from cake_verify.analyses.unwritten_tail import unwritten_tails
from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import NAMED

PAGE = Page(
    code="Q012",
    title="tiles that end before the tensor does",
    statement="Where the coordinate of every store of a tensor steps by tiles or rounds whose number follows from the extent, or by rounds of a fixed number along an extent that is one, the last of them reaches the extent. A loop over tiles that a length cuts comes to the tile in which that ends, one that brings all of a tensor to its last, and some load comes to what is left behind the last whole tile of a tensor, and some tile to what is left of an argument where stores cut the last one. Rounds or tiles that a mask or a `lm.min` inside ends are not counted by a number that rounds down: the round that it is there for would never come.",
    why="A count that rounds down, or divides by another tile than the one that is stored, leaves the rest of the output as it was: right for multiples of the tile, wrong for everything else.",
    failing=edit(NAMED, ("tiles=(lm.cdiv(M, 64), lm.cdiv(N, 128))", "tiles=(M // 64, lm.cdiv(N, 128))")),
    passing=NAMED,
    limits="An arm that memory decides about for a whole tile is looked at as if every tile took it. Tried on small arguments that keep every `lm.assume`, for coordinates that are linear in tile fields, members and loop variables. Tensors that the launch also reads are left alone; extents that are numbers are decided where one store writes the tensor. Other counts that round an argument down are tried where loads, or bulk copies of a tensor of one axis, come to its end for all whole numbers of tiles that are tried and for no other.",
)


def check(program: Program) -> Iterator[Fault]:
    found = list(_check(program))
    for taken in taken_arms(program) if not found else ():
        found = found or list(_check(taken))
    yield from found


def _check(program: Program) -> Iterator[Fault]:
    early = list(early_rounds(program))
    yield from early
    unwritten = list(unwritten_tails(program))
    yield from unwritten
    told = {fault.span for fault in unwritten}  # what is too low for the stores is for the loads, too
    unread = [fault for fault in unread_tails(program) if fault.span not in told]
    yield from unread
    if not unwritten and not unread:
        down = list(rounded_down(program))
        yield from down
        if not early and not down:
            yield from dead_ends(program)
