"""S044: a condition keeps a tile from waiting for the tile before it."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Expr, For, Program
from cake_verify.analyses import edits
from cake_verify.analyses.links import LeftOut, left_out, links
from cake_verify.analyses.trips import spoken, written
from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import CARRY

PAGE = Page(
    code="S044",
    title="a link of a chain left out",
    statement="Where tiles follow each other along an axis by flags, the condition around `lm.spin` leaves out those tiles that have nobody before them on that axis, and no more.",
    why="A condition that starts one tile late keeps the second tile from taking what the first has left: its word is raised and nobody waits for it, and everything after lacks a part.",
    failing=edit(CARRY, ("if t.g > 0:", "if t.g > 1:")),
    passing=CARRY,
    limits="Decided where one condition compares one field of the tile with a number, or with the end of its axis, and one unconditional signal raises the words at a constant distance. "
    "Chains that start anew every so many tiles say so with another condition (`t.g % 8 > 0`), of which nothing is said.",
)


def check(program: Program) -> Iterator[Fault]:
    for link in links(program):
        found = left_out(program, link)
        if found is not None:
            yield _fault(found)
            return


def _fault(found: LeftOut) -> Fault:
    link = found.link
    flags = str(link.spin.op.attrs["flags"])
    loop = next(p for p in link.spin.path if isinstance(p, For) and p.kind == "tiles")
    name = f"{written(loop.var)}.{found.field}"
    which = _which(name, found)
    cond = spoken(found.guard.cond)
    other = f"{abs(found.shift)} tile{'s' if abs(found.shift) > 1 else ''} {'before' if found.shift < 0 else 'behind'} it"
    message = f"the tile at {which} does not wait for the one {other}, which raises `{flags}[{_word(found)}]` for it: `{cond}` leaves it out"
    related = ((link.spin.op.span, "not waited for there"), (link.signal.op.span, "raised here, by every tile"))
    fixes = (edits.replace(found.guard.cond.span, f"{name} >= {found.threshold}" if found.threshold != "1" else f"{name} > 0"),) if found.threshold and found.guard.cond.span.line else ()
    return Fault("S044", message, found.guard.cond.span, related, f"let the condition hold wherever there is a tile {other}", fixes,
                 {"role": link.spin.role.name, "flags": flags, "field": found.field})  # fmt: skip


def _which(name: str, found: LeftOut) -> str:
    if found.from_end:
        return f"`{name}` = {-found.last} before the end of its axis"
    return f"`{name}` = {found.first}" + (f" .. {found.last}" if found.last > found.first else "")


def _word(found: LeftOut) -> str:
    e = found.link.spin.op.operands["i"]
    return spoken(e) if isinstance(e, Expr) else "?"
