"""Parts of what is written to shared memory that no run ever reads, although the rest is read part by part.

A copy brings a tile and its readers take slices of it, or members write a slice each and their leader reads them all. Where every reader
takes slices that follow from constants, members and loops of a fixed length, the slices that nobody takes in any run are left out by
mistake: a read starts at 0 for everyone, or a loop stops a step early. Accesses are looked at only where the end of every run shows bytes
that were written and not read (`unread_runs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue, Touch
from cake_ir.program import Expr, For, If, Op
from cake_ir.record import record
from cake_ir.types import ViewT
from cake_verify.analyses import trips
from cake_verify.analyses.affine import affine
from cake_verify.analyses.labels import Box, boxed
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.regions import stage_mask
from cake_verify.analyses.sites import by_member
from cake_verify.analyses.slices import slices
from cake_verify.analyses.state import Member, World

Rect = tuple[int, int, int, int]
"""Row, rows, column and columns of a part of a view."""

COPIES = frozenset({"tma_load", "cp_async", "cp_async_rows", "bulk_load"})
"""Operations that bring what lies in global memory."""

_COMPUTED = frozenset({"store", "send"})


@dataclass(slots=True, eq=False)
class Fill:
    """One execution of a write: by whom, which part, and how often each member's operations have read which parts of it since."""

    op: int
    place: Rect
    by: Member
    coords: tuple[Any, ...] | None
    extents: dict[str, Any]
    reads: dict[tuple[Rect, int, int], int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Written:
    """What one operation has written in all runs: the granules read of it, its parts with their slots, and its fills."""

    read: int = 0
    stages: dict[Rect, set[int]] = field(default_factory=dict)
    fills: list[Fill] = field(default_factory=list)


@record()
class Unread:
    """Slices of a view that `op` writes and nobody reads, those that are read, and the read that should have come by: `odd` where it takes
    one that others take, else one that stops early."""

    op: Op
    view: str
    parts: tuple[Rect, ...]
    read: tuple[Rect, ...]
    reader: Op
    role: str
    members: tuple[int, ...]
    odd: bool


def end_of_run(world: World) -> tuple[set[int], set[int]]:
    """The operations whose bytes are there at the end of a run, and those of them that have left some unread."""
    own: set[int] = set()
    left: set[int] = set()
    for cta in world.ctas:
        own.update(cta.O)
        left.update([op for op, read in zip(cta.O, cta.R, strict=True) if not read])
    return own, left


def candidates(plan: Plan, numbers: Iterable[int]) -> frozenset[int]:
    """The writes of which a part may be left unread: those whose readers take parts that a text decides, two at least or one again and again."""
    return frozenset(n for n in numbers if n >= 0 and plan.program.ops[n].name in COPIES | _COMPUTED and _readers_known(plan, n))


def _readers_known(plan: Plan, number: int) -> bool:
    t = _type(plan.program.ops[number])
    readers = [s.op for s in plan.sites.values() if t is not None and any(mode == "r" and e.type.view == t.view for _, mode, e in _touches(plan, s.op))]
    return bool(readers) and all(_decided(plan, op) for op in readers)


def _decided(plan: Plan, op: Op) -> bool:
    """Whether which part an operation reads, and that it does, follows from constants, members and loops of a fixed length."""
    site = plan.sites[op.id]
    fixed = {s.var for s in site.loops if s.lo is not None and s.hi is not None and s.lo.op == "const" and s.hi.op == "const"} | {"member"}
    taken: set[str] = set()
    for x in slices(plan, op):
        if x.form is None or not set(x.form.terms) <= fixed:
            return False
        taken.update(x.form.terms)
    if op.name == "ld" and not _known(plan, site.role, op.operands.get("i"), fixed):
        return False
    resolve = trips.resolver_of(plan.program, site.role)
    return all(not isinstance(s, If) or by_member(s.cond) or not _varies(resolve(s.cond), fixed if op.name == "ld" else taken) for s, _ in site.around)


def _known(plan: Plan, role: str, e: object, fixed: set[str]) -> bool:
    form = affine(plan.program, role, e) if isinstance(e, Expr) else None
    return form is not None and set(form.terms) <= fixed


def _varies(cond: Expr, fixed: set[str]) -> bool:
    """Whether a condition may let an operation take some of its parts and not others."""
    return any(n.op == "role_index" or (n.op == "var" and n.attrs["name"] in fixed) for n in cond.parts())


def _type(op: Op) -> ViewT | None:
    e = op.operands.get("view")
    return e.type if isinstance(e, Expr) and isinstance(e.type, ViewT) else None


def _touches(plan: Plan, op: Op) -> Iterator[tuple[str, str, Any]]:
    """(operand, mode, expression) of the accesses of shared memory."""
    for effect in effects_of(op, plan.program):
        for t in effect.touches if isinstance(effect, Issue) else (effect,) if isinstance(effect, Touch) else ():
            e = op.operands.get(t.operand)
            if t.space == "smem" and isinstance(e, Expr) and isinstance(e.type, ViewT):
                yield t.operand, t.mode, e


def nearby(plan: Plan, numbers: Iterable[int]) -> dict[int, list[tuple[str, str, ViewT]]]:
    """The operations that may access bytes which the writes of `numbers` fill: operand, mode and type of each of their views there."""
    whole: dict[str, int] = {}

    def mask(view: str) -> int:
        found = whole.get(view)
        if found is None:
            regions, layout = plan.regions, plan.regions.views[view]
            one = stage_mask(layout, 0, layout.rows, 0, layout.cols, regions.granule) << regions.shift[view]
            found = 0
            for s in range(plan.program.views[view].stages):
                found |= one << (s * regions.strides[view] // regions.granule)
            whole[view] = found
        return found

    filled = 0
    for n in numbers:
        for _, _, e in _touches(plan, plan.program.ops[n]):
            filled |= mask(e.type.view)
    near: dict[int, list[tuple[str, str, ViewT]]] = {}
    for s in plan.sites.values():
        for o, mode, e in _touches(plan, s.op):
            if mask(e.type.view) & filled:
                near.setdefault(s.op.id, []).append((o, mode, e.type))
    return near


Access = Callable[[Member, tuple[Any, ...]], None]


class Parts:
    """Who reads which part of the writes of `numbers`, over all runs that it is shown."""

    def __init__(self, plan: Plan, numbers: frozenset[int]) -> None:
        self.plan, self.numbers = plan, numbers
        self.written = {n: Written() for n in numbers}
        self.views = {n: t.view for n in numbers if (t := _type(plan.program.ops[n])) is not None}
        self.owner: dict[tuple[int, int], Fill | None] = {}
        self.extents: dict[str, Any] = {}
        self.handlers: dict[int, list[Access]] = {}
        for number, touched in nearby(plan, numbers).items():
            op = plan.program.ops[number]
            self.handlers[number] = [self._reads(op, o, t) if mode == "r" else self._writes(op, o, t) for o, mode, t in touched]

    def look(self, args: dict[str, Any], log: Iterable[tuple[Member, tuple[Any, ...]]]) -> None:
        """One run: its arguments, and its events in order, of which those with a handler count."""
        self.owner = {}
        self.extents = args
        handlers = self.handlers
        for m, values in log:
            for handler in handlers.get(values[0], ()):
                handler(m, values)

    # ------------------------------------------------------------ accesses

    def _reads(self, op: Op, operand: str, t: ViewT) -> Access:
        plan, number = self.plan, op.id
        at, element = plan.code.ops[number].index[operand], op.name == "ld"
        atoms = plan.lookup(op, operand, rows=1, cols=1) if element else plan.lookup(op, operand)
        which, width = plan.code.ops[number].index.get("i"), t.shape[-1]
        paired = op.attrs.get("ctas") == 2

        def read(m: Member, v: tuple[Any, ...]) -> None:
            n, row, col = v[at]
            rect = (row, t.rows, col, t.cols)
            if element:
                down, across = divmod(0 if which is None else v[which], width)
                down, across = (across, down) if t.transposed else (down, across)
                row, col = row + down, col + across
                rect = (row, 1, col, 1)
            ranks = (m.cta.rank, m.cta.rank ^ 1) if paired else (m.cta.rank,)
            seen: set[int] = set()
            for rank in ranks:
                for a in atoms[n, row, col]:
                    fill = self.owner.get((rank, a))
                    if fill is None:
                        continue
                    self.written[fill.op].read |= plan.regions.mask(a)
                    if id(fill) not in seen:
                        seen.add(id(fill))
                        key = (rect, m.number, number)
                        fill.reads[key] = fill.reads.get(key, 0) + 1

        return read

    def _writes(self, op: Op, operand: str, t: ViewT) -> Access:
        plan, number = self.plan, op.id
        index = plan.code.ops[number].index
        at, to, coords = index[operand], index.get("cta"), index.get("coords", -1)
        atoms = plan.lookup(op, operand)
        mine = number in self.numbers and operand == "view"
        axis = op.attrs.get("multicast")
        receivers = plan.multicast(str(axis)) if axis and plan.ranks > 1 else None
        slots = plan.slots(op, operand)

        def write(m: Member, v: tuple[Any, ...]) -> None:
            place = v[at]
            fill = None
            if mine:
                rect = (place[1], t.rows, place[2], t.cols)
                fill = Fill(number, rect, m, v[coords] if coords >= 0 else None, self.extents)
                record = self.written[number]
                record.fills.append(fill)
                record.stages.setdefault(rect, set()).add(place[0] % slots)
            ranks = receivers[m.cta.rank] if receivers else (m.cta.rank if to is None else v[to],)
            for rank in ranks:
                for a in atoms[place]:
                    self.owner[rank, a] = fill

        return write

    # ------------------------------------------------------------ what is left

    def unread(self) -> Unread | None:
        """The first write of which slices are never read, where that is no choice."""
        for number in sorted(self.numbers):
            op, w = self.plan.program.ops[number], self.written[number]
            t = _type(op)
            if t is None or not w.fills:
                continue
            found = self._of_copy(op, t, w) if op.name in COPIES else self._of_members(op, t, w)
            if found is not None:
                return found
        return None

    def _mask(self, view: str, rect: Rect, stages: Iterable[int]) -> int:
        regions = self.plan.regions
        mask = stage_mask(regions.views[view], *rect, regions.granule) << regions.shift[view]
        out = 0
        for s in stages:
            out |= mask << (s * regions.strides[view] // regions.granule)
        return out

    def _of_copy(self, op: Op, t: ViewT, w: Written) -> Unread | None:
        """Slices of one size cut what a copy brings; one that lies inside the tensor and that nobody takes is a read too few."""
        sizes = {(rect[1], rect[3]) for f in w.fills for rect, _, _ in f.reads}
        if len(sizes) != 1:
            return None
        rows, cols = sizes.pop()
        box = boxed(self.plan, op)
        live: set[Rect] = set()
        dead: set[Rect] = set()
        for (row, high, col, wide), stages in w.stages.items():
            if high % rows or wide % cols:
                return None
            for r in range(row, row + high, rows):
                for c in range(col, col + wide, cols):
                    cell = (r, rows, c, cols)
                    (live if self._mask(t.view, cell, stages) & w.read else dead).add(cell)
        dead = {cell for cell in dead if any(self._inside(op, box, f, cell) for f in w.fills)}
        again = any(n > 1 for f in w.fills for n in _by_rect(f).values())
        sliced = {number for f in w.fills for _, _, number in f.reads if self._moves(number)}
        if not dead or not live or not (again or sliced or len(live) > 1):  # one part of a copy, taken once: it may bring more than is needed
            return None
        return self._told(op, t, w, dead, live, (), again and len(live) < 2)

    def _moves(self, number: int) -> bool:
        """Whether an operation takes another part for each member or round."""
        op = self.plan.program.ops[number]
        return op.name == "ld" or any(s.form is not None and s.form.terms for s in slices(self.plan, op))

    def _inside(self, op: Op, box: Box | None, f: Fill, cell: Rect) -> bool:
        """Whether a part of what a copy brought starts inside its tensor."""
        if not (f.place[0] <= cell[0] < f.place[0] + f.place[1] and f.place[2] <= cell[2] < f.place[2] + f.place[3]):
            return False
        tensor = self.plan.program.tensors[str(op.attrs.get("tensor"))]
        if op.name == "bulk_load":
            return True
        if f.coords is None or len(tensor.extents) != len(f.coords) or box is None:
            return False
        for k, by in ((box.row, cell[0] - f.place[0]), (box.col, cell[2] - f.place[2])):
            if k is None or (k == box.row and op.name == "cp_async_rows"):  # a list says which rows
                continue
            if self._steps(op, k):
                continue
            e = tensor.extents[len(tensor.extents) - 1 - k]
            extent = e if isinstance(e, int) else f.extents.get(e, self.plan.program.tunables.get(e))
            first = f.coords[k]
            if not isinstance(extent, int) or not isinstance(first, int) or first + by >= extent:
                return False
        return True

    def _steps(self, op: Op, k: int) -> bool:
        """Whether a coordinate steps along its axis: then only the last tile, or in a run with invented lengths any, reaches past its end."""
        coords = op.operands["coords"]
        assert isinstance(coords, tuple)  # the fill has its values
        return any(n.op in ("field", "var", "ld") for n in trips.resolver_of(self.plan.program, self.plan.sites[op.id].role)(coords[k]).parts())

    def _of_members(self, op: Op, t: ViewT, w: Written) -> Unread | None:
        """A part that one member writes and nobody reads, where a reader takes its own part and others', or one part again and again."""
        dead = {rect for rect, stages in w.stages.items() if not self._mask(t.view, rect, stages) & w.read}
        live = set(w.stages) - dead
        if not dead or not live or len({(r[1], r[3]) for r in w.stages}) != 1:
            return None
        own: set[int] = set()
        others: set[int] = set()
        again = False
        for f in w.fills:
            for (_, reader, _), n in f.reads.items():
                (own if reader == f.by.number else others).add(reader)
                again |= n > 1
        writers = {f.by for f in w.fills if f.place in dead}
        again &= len(dead) > 1
        inclusive = {m for m in own & others if all(m != x.number for x in writers)}
        posted = op.name == "send" and bool(own) and own.isdisjoint(m.number for m in writers)  # who reads its own part alone was sent the others' for nothing
        if not again and not inclusive and not posted:
            return None
        members = tuple(sorted({x.cta.rank if self.plan.ranks > 1 and op.name == "send" else x.index for x in writers}))
        return self._told(op, t, w, dead, live, members, again)

    def _told(self, op: Op, t: ViewT, w: Written, dead: set[Rect], live: set[Rect], members: tuple[int, ...], again: bool) -> Unread:
        counts: dict[int, int] = {}
        for f in w.fills:
            for (_, _, number), n in f.reads.items():
                counts[number] = counts.get(number, 0) + n
        ops = self.plan.program.ops
        along = 0 if {(r[2], r[3]) for r in live} & {(r[2], r[3]) for r in dead} else 2
        if {(r[0], r[1]) for r in live} & {(r[0], r[1]) for r in dead}:
            along = 2
        other = 2 - along
        band = {r[other] for r in dead} & {r[other] for r in live}  # where both are, one beside the other
        if band:
            dead, live = ({r for r in x if r[other] in band} for x in (dead, live))
            near = {number for f in w.fills for (rect, _, number) in f.reads if rect[other] in band}
            counts = {n: c for n, c in counts.items() if n in near}
        took: dict[int, set[Rect]] = {}
        for f in w.fills:
            for rect, _, number in f.reads:
                took.setdefault(number, set()).add(rect)
        moving = [n for n in counts if self._moves(n)]
        still = [n for n in counts if n not in moving]
        odd = [n for n in still if again or any(took[n] & took[o] for o in took if o != n)]  # takes what another one takes too
        reader = ops[max(odd or moving or still, key=lambda n: (counts[n], n))]
        return Unread(op, t.view, tuple(sorted(dead)), tuple(sorted(live)), reader, self.plan.sites[reader.id].role, members, again or bool(odd))


def _by_rect(f: Fill) -> dict[Rect, int]:
    out: dict[Rect, int] = {}
    for (rect, _, _), n in f.reads.items():
        out[rect] = out.get(rect, 0) + n
    return out


def loop_of(plan: Plan, op: Op) -> For | None:
    """The innermost loop of a fixed length around an operation."""
    return next((s for s in reversed(plan.sites[op.id].loops) if s.hi is not None and s.hi.op == "const"), None)


__all__ = ["Parts", "Unread", "candidates", "end_of_run", "loop_of"]
