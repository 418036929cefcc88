"""D085: the tiles of a tensor that a loop goes on with come to where the first of them was."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import For, Program
from cake_verify.analyses.sites import Site, names_view, on_view, sites
from cake_verify.analyses.words import call
from cake_verify.rule import Page
from cake_verify.rules.consistency.d065_same_product import LARGEST
from cake_verify.rules.examples import edit

PAGE = Page(
    code="D085",
    title="a tile that comes to another tensor's place",
    statement="Where copies in front of a loop bring tiles of two tensors to two views of one shape, and a copy in the loop goes on with one of them, it does not bring it to the other's view, while its own stays as it was.",
    why="The loop goes on multiplying the first tile of one tensor, by tiles of it that have taken the other's place: names differ by a letter, and every shape fits.",
    failing=edit(LARGEST, ("k.cp_async(K, coords=(0, (j + 1) * 64))", "q.cp_async(K, coords=(0, (j + 1) * 64))")),
    passing=LARGEST,
    limits="Decided within one role, where each of the two views has tiles of one tensor in front of the loop, the loop brings nothing else to either, and reads both. Where the first tile is used in front of the loop, its place may be used again.",
)

_COPIES = ("cp_async", "tma_load", "cp_async_rows", "bulk_load")


def check(program: Program) -> Iterator[Fault]:
    copies = sites(program).of(*_COPIES)
    if len(copies) < 3:
        return
    for s in copies:
        loop = s.loops[-1] if s.loops and s.loops[-1].kind != "tiles" else None
        if loop is None:
            continue
        mine = [o for o in copies if o.role is s.role]
        before = [o for o in mine if o.order < s.order and loop not in o.loops]
        view, tensor = on_view(s.op), str(s.op.attrs["tensor"])
        here = {str(o.op.attrs["tensor"]) for o in before if on_view(o.op) == view}
        own = {on_view(o.op) for o in before if str(o.op.attrs["tensor"]) == tensor}
        if len(here) != 1 or tensor in here or len(own) != 1 or view in own:
            continue
        (other,) = own
        inside = [o for o in mine if loop in o.loops and o is not s]
        if any(on_view(o.op) in (view, other) or str(o.op.attrs["tensor"]) in (tensor, *here) for o in inside) or not _alike(program, view, other) or not (_read(program, s, loop, view) and _read(program, s, loop, other)):
            continue
        if _used_before(program, s, loop, view):
            continue
        first = next(o for o in before if str(o.op.attrs["tensor"]) == tensor)
        message = f"{call(s.op)} brings tiles of `{tensor}` to `{view}`, where `{next(iter(here))}` is; the first one is in `{other}`, which the loop reads as it was"
        yield Fault("D085", message, s.op.spans.get("view", s.op.span), ((first.op.span, "the first tile"), (loop.head, "in this loop")), f"bring it to `{other}`", (), {"role": s.role.name, "view": view})
        return


def _alike(program: Program, one: str, other: str) -> bool:
    a, b = program.views[one], program.views[other]
    return a.shape == b.shape and a.dtype == b.dtype


def _read(program: Program, s: Site, loop: For, view: str) -> bool:
    """Whether a loop reads a view in the role that copies into it."""
    return any(loop in x.loops and _reads(x, view) for x in sites(program).of_role(s.role.name))


def _used_before(program: Program, s: Site, loop: For, view: str) -> bool:
    """Whether something in front of the loop has read a view: what is there has served, and its place is free."""
    return any(x.order < s.order and loop not in x.loops and _reads(x, view) for x in sites(program).of_role(s.role.name))


def _reads(x: Site, view: str) -> bool:
    return x.op.name not in _COPIES and x.op.name != "store" and names_view(x.op, view)
