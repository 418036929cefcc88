"""What is known of global memory while all CTAs of a small grid are walked: for every box of a tensor its last write and the accesses since.

Boxes are compared as intervals along every axis, clipped to the tensor where its extents are known. Bits are those of the happens-before
machine: an access is safe where everything that conflicts with it is known to whoever makes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cake_verify.analyses.state import Found, Member

Interval = tuple[int, int]
Box = tuple[Interval, ...]
"""First element and end along every axis, innermost first."""

READ, WRITE, UPDATE, FLAG = "read", "write", "update", "flag"
"""How elements are touched: updates (atomic, or by the copy engine) commute with each other, and so do flags."""

ONE_THREAD = "one thread"
"""In place of lanes: the first thread of a member makes the access."""

_AGAINST = {READ: (WRITE, UPDATE, FLAG), WRITE: (READ, WRITE, UPDATE, FLAG), UPDATE: (READ, WRITE), FLAG: (READ, WRITE)}


@dataclass(slots=True, eq=False)
class Access:
    """One access that may still matter: its bit, who made it where, and whether the elements are known (`sure`) or only a box around them, and whether memory says which (`told`), by which entry of which table where that is known; `inner`: its own box, of which `box` is what may be touched in its place; `heard`: reads that all lanes of a row have done before what it writes exists."""

    kind: str
    bit: int
    member: Member
    op: int
    scope: dict[str, Any]
    box: Box
    sure: bool = True
    plain: int = 0
    lanes: Any = None
    tile: Any = None
    told: bool = False
    entry: tuple[tuple[str, ...], tuple[Any, ...]] | None = None
    inner: Box | None = None
    heard: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Cell:
    """One box: the accesses of it that a later one may conflict with, the first read of each operation that came before any write, and
    the cells that share elements with it."""

    box: Box
    seen: list[Access] = field(default_factory=list)
    given: dict[int, Access] = field(default_factory=dict)
    near: list[Cell] = field(default_factory=list)


def meet(a: Box, b: Box) -> bool:
    """Whether two boxes of one tensor share an element."""
    return all(x[0] < y[1] and y[0] < x[1] for x, y in zip(a, b, strict=True))


def _beyond(a: Box, b: Box) -> bool:
    """Whether the second box lies behind the first along one axis, and beside it along none."""
    moved = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    return len(moved) == 1 and moved[0][0][1] <= moved[0][1][0]


class Cells:
    """The cells of every tensor of one run, and pairs of accesses of which it is not known whether they touch the same elements.

    Of the tensors in `produced` the reads are sorted: `before` holds by operation a read of elements that the launch only writes later, with
    that write, and `behind` a read of elements that it has written; `left` holds the same by tile, with what wrote them.
    """

    def __init__(self, produced: frozenset[str] = frozenset()) -> None:
        self.blind = False
        self.produced = produced
        self.before: dict[int, tuple[str, Access, Access]] = {}
        self.behind: dict[int, Access] = {}
        self.left: dict[tuple[int, Any], tuple[Access, Access]] = {}
        self.tensors: dict[str, dict[Box, Cell]] = {}
        self.rows: dict[tuple[str, int], list[Cell]] = {}
        self.tall: dict[str, list[Cell]] = {}
        self.doubts: list[tuple[str, Access, Access]] = []

    def _cell(self, tensor: str, box: Box) -> Cell:
        cells = self.tensors.setdefault(tensor, {})
        cell = cells.get(box)
        if cell is None:
            cell = Cell(box)
            first, end = box[-1]
            beside: Iterable[Cell] = cells.values()
            if end - first == 1:  # most launches walk rows: those of other rows need no look
                mine = self.rows.setdefault((tensor, first), [])
                beside = (*mine, *self.tall.get(tensor, ()))
                mine.append(cell)
            else:
                self.tall.setdefault(tensor, []).append(cell)
            cell.near = [c for c in beside if meet(c.box, box)]
            for c in cell.near:
                c.near.append(cell)
            cell.near.append(cell)
            cells[box] = cell
        return cell

    def close(self) -> None:
        """Nothing will be touched any more: cells that share elements let go of each other."""
        for cells in self.tensors.values():
            for cell in cells.values():
                cell.near.clear()

    def touch(self, tensor: str, now: Access, known: int, visible: int | None = None) -> None:
        """Make an access by somebody who knows `known`; `visible` are the ordinary writes that its proxy can see, where it is the async one."""
        if self.blind:
            return
        cell = self._cell(tensor, now.box)
        against = _AGAINST[now.kind]
        for other in cell.near:
            for old in other.seen:
                if old.kind not in against:
                    continue
                if not old.bit & known:
                    if self._own_lanes(old, now):
                        continue
                    if now.told and old.op == now.op:
                        continue  # a table gives each execution a place of its own, as where this is the only access of the tensor
                    if now.entry is not None and old.entry is not None and now.entry[0] == old.entry[0] and now.entry[1] != old.entry[1]:
                        continue  # other entries of that table, as above
                    if old.inner is not None and now.inner is not None and old.tile == now.tile and not meet(old.inner, now.inner):
                        continue  # both have happened in one tile, each where it says
                    if not (old.sure and now.sure):
                        self.doubts.append((tensor, old, now))
                        continue
                    raise Found("S039", tensor=tensor, old=old, now=now)
                if visible is not None and old.plain & ~visible and old.sure and now.sure:
                    raise Found("S039", tensor=tensor, old=old, now=now, unseen=True)
        if now.sure and tensor in self.produced:
            self._provenance(tensor, cell, now)
        if now.kind == WRITE and now.sure:
            self._replaces(tensor, cell, now)
            cell.seen = [a for a in cell.seen if not a.sure]
        elif now.sure:
            cell.seen = [a for a in cell.seen if not (a.kind == now.kind and a.member is now.member and a.op == now.op and a.bit == now.bit)]
        cell.seen.append(now)

    def _provenance(self, tensor: str, cell: Cell, now: Access) -> None:
        """Keep whether a read sees what the launch has written or what was there before it."""
        if now.kind == READ:
            write = next((a for c in cell.near for a in c.seen if a.kind != READ), None)
            if write is not None:
                self.behind.setdefault(now.op, now)
                self.left.setdefault((now.op, now.tile), (now, write))
            else:
                cell.given.setdefault(now.op, now)
        elif now.kind == WRITE:
            for c in cell.near:
                for op, read in c.given.items():
                    self.before.setdefault(op, (tensor, read, now))

    def unwritten(self) -> tuple[str, Access, Access] | None:
        """A read of elements that nobody has written in the whole launch, by an operation that has read elements in front of them, in the same tile,
        that somebody has: and what wrote those. What lies in front of all that is written may be where a chain starts."""
        for tensor, cells in self.tensors.items() if self.left else ():
            for cell in cells.values():
                for read in cell.given.values():
                    found = self.left.get((read.op, read.tile))
                    if found is not None and _beyond(found[0].box, read.box) and all(a.kind == READ for c in cell.near for a in c.seen):
                        return tensor, read, found[1]
        return None

    def _replaces(self, tensor: str, cell: Cell, now: Access) -> None:
        """A tile's result that another tile writes over, with nobody having read it."""
        old = next((a for a in cell.seen if a.kind == WRITE), None)
        if old is None or old.tile == now.tile or any(a.kind != WRITE for c in cell.near for a in c.seen):
            return
        raise Found("S028", tensor=tensor, old=old, now=now)

    @staticmethod
    def _own_lanes(old: Access, now: Access) -> bool:
        """Whether each lane of one member meets only what it touched itself, or one thread is in its own order; two writes of what memory names may be two
        writes of one place, of which one is lost."""
        if old.lanes == now.lanes == ONE_THREAD and (old.tile == now.tile or not now.told):
            return old.member is now.member and bool(old.bit & old.member.L)
        if old.op in now.heard and old.member is now.member and old.box == now.box and old.tile == now.tile and old.bit & old.member.L:
            return True
        if now.told and old.kind == now.kind:
            return False
        return old.member is now.member and old.lanes is not None and old.lanes == now.lanes and old.box == now.box and bool(old.bit & old.member.L)


__all__ = ["FLAG", "ONE_THREAD", "READ", "UPDATE", "WRITE", "Access", "Box", "Cells", "meet"]
