"""S043: a tile waits for another one, and reads what that one does not write."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, Program
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.analyses.links import handed_over, links, unwritten
from cake_verify.analyses.sites import Site, sites
from cake_verify.analyses.trips import spoken, written
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import CARRY

PAGE = Page(
    code="S043",
    title="waited for, and written by nobody",
    statement="What a tile reads behind `lm.spin` at the place of the tile that it waits for is something that the launch writes.",
    why="The wait says that the other tile has left something there. If nothing stores to that tensor, what is read is whatever the memory held.",
    failing=edit(CARRY, ("            lm.store(LAST, x, coords=(0, t.g))\n", "")),
    passing=CARRY,
    limits="Decided where one signal raises the words, the tile that is waited for lies at a constant distance or is the one of a running number at which is read, and nothing that the launch writes is read behind the wait. "
    "Tensors that are `.const`, `.zeroed` or `.inout` hold something already.",
)


def check(program: Program) -> Iterator[Fault]:
    for link in links(program):
        found = unwritten(program, link.spin, link.word)
        if found is not None:
            yield _fault(program, link.spin, link.signal, found)
            return
    for spin, signal, found in handed_over(program):
        yield _fault(program, spin, signal, found)
        return


def _fault(program: Program, spin: Site, signal: Site, found: Site) -> Fault:
    tensor, flags = str(found.op.attrs["tensor"]), str(spin.op.attrs["flags"])
    message = f"{call(found.op)} reads `{tensor}` where the tile behind `{flags}[{_index(spin)}]` should have left something, and nothing in this launch writes `{tensor}`"
    related = ((spin.op.span, "waited for here"), (signal.op.span, "a store belongs in front of this signal"), (program.tensors[tensor].span, "declared here"))
    fix = _store(program, spin, signal, found)
    return Fault("S043", message, found.op.span, related, f"store to `{tensor}` in front of the signal; where it holds data at the start, declare it `.inout`, or `.const` if it is only read",
                 (fix,) if fix is not None else (), {"tensor": tensor, "role": signal.role.name})  # fmt: skip


def _index(s: Site) -> str:
    e = s.op.operands["i"]
    return spoken(e) if isinstance(e, Expr) else "?"


def _store(program: Program, spin: Site, signal: Site, found: Site) -> Fix | None:
    """The store that would fit: what the signalling role stored last in the shape that is read, at its own place."""
    coords, own, other = found.op.operands.get("coords"), signal.op.operands["i"], spin.op.operands["i"]
    if not isinstance(coords, tuple) or not isinstance(own, Expr) or not isinstance(other, Expr) or not isinstance(found.op.type, FragT):
        return None
    places = [spoken(own) if spoken(e) == spoken(other) else spoken(e) for e in coords]
    dtype = program.tensors[str(found.op.attrs["tensor"])].dtype
    for s in reversed(sites(program).of_role(signal.role.name)):
        x = s.op.operands.get("x")
        if s.order < signal.order and s.op.name == "store" and isinstance(x, Expr) and x.op == "var" and isinstance(x.type, FragT) and (x.type.shape, x.type.dtype) == (found.op.type.shape, dtype):
            text = f"lm.store({found.op.attrs['tensor']}, {written(str(x.attrs['name']), x.span)}, coords=({', '.join(places)}{',' if len(places) == 1 else ''}))"
            return edits.before(signal.op.span, text)
    return None
