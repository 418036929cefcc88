"""What every value means, over the log of one run: labels of tiles and fragments, and what becomes of each product.

A run that is free of races determines its values, so one order of events is enough. Nothing is computed; loads give labels, operations
carry them, and where two meet that cannot both be right the meeting is kept for the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cake_ir.derive.mentions import mentions
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Issue, Touch
from cake_ir.program import Assign, Expr, Op, Program
from cake_ir.types import FragT, TmemT, ViewT
from cake_verify.analyses.fragment_paths import offset
from cake_verify.analyses.labels import (
    CONSTANT,
    NO_PRODUCT,
    NOTHING,
    SUMMED,
    UNKNOWN,
    Axes,
    Label,
    Tile,
    apart,
    boxed,
    join,
    labels_at,
    moved,
    run_along,
)
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.state import Member
from cake_verify.analyses.value_alias import overwritten, shared
from cake_verify.analyses.value_apart import drifting
from cake_verify.analyses.value_beside import misplaced
from cake_verify.analyses.value_beyond import beyond
from cake_verify.analyses.value_bounds import Bounds
from cake_verify.analyses.value_fills import fills, selects
from cake_verify.analyses.value_masks import mask_end, numbering
from cake_verify.analyses.value_parts import collected, reduces
from cake_verify.analyses.value_relations import COMPARISONS, diagonals, relations
from cake_verify.analyses.value_state import Clash, Event, Handler, Operand, Sum, keys_of
from cake_verify.analyses.value_tensor import TensorValues, ends_of

Watch = Callable[["ValueWalk", Op, tuple[str, ...]], Handler | None]
"""What a room has to do at an operation that binds names; None where nothing."""


class ValueWalk(TensorValues):
    """Handlers of one program's operations, and what a run showed: `clashes`, products made and lost by operation, stretches contracted."""

    def __init__(self, plan: Plan, args: dict[str, Any] | None = None) -> None:
        super().__init__(plan)
        self.bounds = Bounds(plan, args or {})
        self.handlers: dict[int, Handler] = {}
        self.args = args or {}
        self.multiplies = any([op.name == "mma" for op in plan.program.ops])
        watches = _watches(plan.program)
        for s in plan.sites.values():
            op, targets = s.op, s.stmt.targets if isinstance(s.stmt, Assign) else ()
            touched = _roles_of(op, plan)
            if touched == ("", "") and not targets and op.name != "mma" and not plan.code.ops[op.id].trees:
                continue  # a barrier, a fence, a turn: nothing is given or taken
            made = [self._compile(op, targets, *touched), self.bounds.binding(op, targets), self.bounds.access(op), *[watch(self, op, targets) for watch in watches]]
            parts = [h for h in made if h is not None]
            if parts:
                self.handlers[op.id] = parts[0] if len(parts) == 1 else _in_turn(tuple(parts))

    def run(self, log: Iterable[Event]) -> None:
        """Walk those events of one run that have a handler."""
        handlers = self.handlers
        for m, values in log:
            handler = handlers.get(values[0])
            if handler is not None:
                handler(m, values)
        for total in self._sums.values():
            self._lose(total)
        for found in diagonals(self) if self.diagonals else ():
            self.off_diagonal(*found)
        pairs = ((s, self.scaled[i ^ 1]) for i, s in enumerate(self.scaled))  # both operands of a product have scales
        self.clashes += [c for s, other in pairs if (c := s.judged(other)) is not None]
        for op, axis, at in misplaced(self) if self.beside else ():
            self.elsewhere(op, axis, at)
        for op, axis, odd in drifting(self) if self.distances else ():
            self.clash("drifting", op, odd[2], odd[3], axis, odd[0], odd[1])
        self.handlers.clear()  # they hold the walk, which would hold them

    # ------------------------------------------------------------ compiling

    def _compile(self, op: Op, targets: tuple[str, ...], space: str, view_mode: str) -> Handler | None:
        if op.name == "mma":
            return self._mma(op)
        if op.name == "tmem_store":
            return self._put_columns(op)
        if op.name == "tmem_copy":
            return self._copy_columns(op)
        if space == "w" and view_mode == "r":
            return self._store(op, self._parts_of_view(op))
        if space == "w" and view_mode == "":
            whole = self._from_tree(op, "x")
            return self._store(op, lambda m, v: (whole(m, v),))
        if space == "r" and view_mode == "w":
            return self._load(op)
        if view_mode == "w":
            return self._put(op)
        if targets:
            return self._bind(op, targets, space, view_mode)
        return self._read_only(op)

    def _bind(self, op: Op, targets: tuple[str, ...], space: str, view_mode: str) -> Handler | None:
        if not isinstance(op.type, FragT) and op.name != "compute":
            return self._read_only(op)
        own = {leaf.name for p in self._trees(op) for leaf in p.leaves} & set(targets)  # what is updated in place is not used up
        if op.name in ("load", "ldmatrix") and view_mode == "r":
            source = self._shaped(op, self._from_view(op, "view"))
        elif op.name == "load" and space == "r" and (run := run_along(self.plan, op)) is not None:
            source = self._placed(op, *run)
        elif op.name == "load" and space == "r":
            box, at, number = boxed(self.plan, op), self._at(op, "coords"), op.id
            source = lambda m, v: NOTHING if box is None else (*labels_at(box, v[at], number), NO_PRODUCT)  # noqa: E731 - one shape of function
        elif op.name == "tmem_load":
            source = self._from_tmem(op, "t")
        elif op.name == "reduce_across":
            keep = {1: 0, 0: 1}.get(op.attrs.get("axis"))  # type: ignore[call-overload]  # an axis number or None
            inner = self._from_tree(op, "x")
            source = lambda m, v: _kept(inner(m, v), keep)  # noqa: E731
        elif "value" in self.plan.code.ops[op.id].trees:
            source = self._from_tree(op, "value", own)
        else:
            source = lambda m, v: NOTHING  # noqa: E731
        stages = op.type.stages if isinstance(op.type, FragT) else 1

        same = self._contents(op, "view") if op.name in ("load", "ldmatrix") and view_mode == "r" else self._own_contents(op) if op.name == "load" else None

        keys, number = [(name, k) for name in targets for k in range(stages)], op.id
        fresh = [key for key in keys if key[0] not in own]
        kept = list(targets) if self.multiplies and not fresh else []  # what a product may throw away
        fresh = [key for key in fresh if key[0] in self.followed]

        def bind(m: Member, v: tuple[Any, ...]) -> None:
            self._set(m, keys, source(m, v), same(m, v) if same is not None else None)
            for name in kept:
                self.updated[m.number, (name, 0)] = number
            if fresh and self._sums:
                for key in fresh:
                    total = self._sums.pop((m.number, key), None)
                    if total is not None:
                        self._lose(total)

        return bind

    # ------------------------------------------------------------ products

    def _operand(self, op: Op, name: str) -> Operand:
        """The labels of an operand of a product, and what tells one operand's contents from another's."""
        e = op.operands[name]
        assert isinstance(e, Expr)
        if isinstance(e.type, ViewT):
            return self._view_operand(op, name)
        if isinstance(e.type, TmemT):
            return self._tmem_operand(op, name)
        leaves = self.plan.paths(self.plan.code.ops[op.id].trees[name]).leaves
        places = list(zip(keys_of(leaves), leaves, strict=True))
        labels = self._from_tree(op, name)

        def both(m: Member, v: tuple[Any, ...]) -> tuple[Tile, Any]:
            out, tile = [], labels(m, v)
            for (fixed, array, slot, stages), leaf in places:
                key = fixed or (array, v[slot] % stages)
                out.append((self._versions.get((m.number, key), key), offset(leaf.row_from, v), offset(leaf.col_from, v)))
            return tile, tuple(out)

        return both

    def _contents(self, op: Op, name: str) -> Callable[[Member, tuple[Any, ...]], Any]:
        """What tells the contents of a rectangle of a view from others: the write that filled it, and which part it is."""
        atoms, at = self.plan.lookup(op, name), self._at(op, name)
        turned = getattr(getattr(op.operands[name], "type", None), "transposed", False)  # read the other way round it is another matrix

        def contents(m: Member, v: tuple[Any, ...]) -> Any:
            first = atoms[v[at]][0]
            cell = self._cells.get(m.cta.rank, {}).get(first)
            filled = cell and (cell[4] if isinstance(cell[4], tuple) else (first, cell[4]))
            return filled and ((filled, "turned") if turned else filled, v[at][1], v[at][2])

        return contents

    def _own_contents(self, op: Op) -> Callable[[Member, tuple[Any, ...]], Any] | None:
        """What tells row vectors apart that a program with block scales reads from tensors: the place they come from."""
        if not isinstance(op.type, FragT) or op.type.form != "rowvec" or not any(x.operands.get("scale_a") is not None for x in self.plan.program.ops):
            return None
        at, tensor, number, run = self._at(op, "coords"), str(op.attrs["tensor"]), op.id, self._first_of(op)

        def contents(m: Member, v: tuple[Any, ...]) -> Any:
            place = (tensor, v[at] if run is None else run(m, v, v[at]), (0, 0))
            self.loaded[place] = number
            return place, 0, 0

        return contents

    def _mma(self, op: Op) -> Handler:
        left, right = self._operand(op, "a"), self._operand(op, "b")
        acc, number = op.operands["acc"], op.id
        assert isinstance(acc, Expr)
        init, start = self.plan.code.ops[op.id].index.get("init"), op.operands.get("init")
        fresh = isinstance(start, Expr) and start.op == "const" and bool(start.attrs["value"])
        tmem = acc.type if isinstance(acc.type, TmemT) else None
        columns = self.plan.columns(tmem) if tmem else None
        at = self._at(op, "acc") if tmem else -1
        leaves = [] if tmem else self.plan.paths(self.plan.code.ops[op.id].trees["acc"]).leaves
        places = keys_of(leaves)
        whole = len(leaves) == 1 and (leaves[0].row_from, leaves[0].col_from) == ((0, ()), (0, ()))
        depth = _shape(op, "a")[1]
        paired = tmem is not None and op.attrs.get("ctas") == 2
        height, width = _shape(op, "a")[0], _shape(op, "b")[0] * (2 if paired else 1)
        scales = [(i, self._scales(op, n)) for i, n in enumerate(("scale_a", "scale_b")) if op.operands.get(n) is not None]
        self.scaled += [s for _, s in scales]
        tensor_of = lambda label: str(self.plan.program.ops[label[2]].attrs.get("tensor"))  # noqa: E731 - two uses
        covered: dict[tuple[str, int, int], set[tuple[int, int]]] = {}

        def contracted(axis: str, one: Label, other: Label) -> set[tuple[int, int]]:
            """The stretches of an axis that the products of two copies' tiles have summed over."""
            assert one and other
            stretch = (axis, tensor_of(one), tensor_of(other))
            self.workers.setdefault(stretch, set()).update((number, one[2], other[2]))
            return self.covered.setdefault(stretch, set())

        def mma(m: Member, v: tuple[Any, ...]) -> None:
            product(m, v, left(m, v), right(m, v))

        def of_pair(m: Member, v: tuple[Any, ...]) -> None:
            """Each CTA's accumulator is its own rows times the columns of both; the leader's half of these comes first."""
            ends = ends_of(m)
            (first, which), (second, other) = (right(end, v) for end in ends)
            if first[1] and second[1] and first[1] != second[1] and first[1][:2] != second[1][:2]:
                self.clash("contraction", op, m, v, 1, first[1], second[1])
            by = apart(second[0], first[0])
            if by == 0:
                self.clash("halves", op, m, v, 0, first[0], second[0])
            whole = first[0] if by == width // 2 else UNKNOWN
            for end in ends:
                product(end, v, left(end, v), ((whole, first[1], first[2] | second[2]), None if which is None or other is None else (which, other)))

        def product(m: Member, v: tuple[Any, ...], one: tuple[Tile, Any], other: tuple[Tile, Any]) -> None:
            (a, which_a), (b, which_b) = one, other
            if a[1] and b[1]:
                if a[1][0] == b[1][0]:
                    if a[1][1] != b[1][1]:
                        self.clash("contraction", op, m, v, 1, a[1], b[1])
                    else:
                        found = covered.get((a[1][0], a[1][2], b[1][2]))
                        if found is None:
                            found = covered[a[1][0], a[1][2], b[1][2]] = contracted(a[1][0], a[1], b[1])
                        found.add((a[1][1], depth))
                elif (b[0] and b[0][0] == a[1][0]) or (a[0] and a[0][0] == b[1][0]):
                    self.clash("transposed", op, m, v, 1, a[1], b[1])
            elif a[1] and apart(a[1], b[0]) == 0:
                self.clash("transposed", op, m, v, 1, a[1], b[0])
            elif b[1] and apart(a[0], b[1]) == 0:
                self.clash("transposed", op, m, v, 1, a[0], b[1])
            if not whole and tmem is None:  # a part of an accumulator: of the whole nothing is known any more
                for fixed, array, slot, stages in places:
                    part_of = fixed or (array, v[slot] % stages)
                    self._frags.setdefault(m.number, {})[part_of] = NOTHING
                    self._sums.pop((m.number, part_of), None)
                return
            begins = fresh or (init is not None and bool(v[init]))
            region: list[int] = []
            key: int | tuple[str, Any]
            if columns is not None:
                region = columns[v[at]]
                key, owner = region[0], -1 - m.cta.rank
                cell = self._cells.get(m.cta.rank, {}).get(region[0])
                if cell is not None and cell[0] != tmem.tmem and not begins:  # type: ignore[union-attr]  # columns come with tensor memory
                    self.clash("clobbered", op, m, v, 0, UNKNOWN, ("", 0, cell[5]))
                old: Tile = NOTHING if cell is None else (cell[1], moved(cell[2], v[at]), cell[3])
            else:
                fixed, array, slot, stages = places[0]
                key, owner = fixed or (array, v[slot] % stages), m.number
                old = self._frags.get(m.number, {}).get(key, NOTHING)
            total = self._sums.get((owner, key))
            if total is None:
                total = self._sums[owner, key] = Sum(begun=self._fresh())
            before = self.updated.pop((owner, key), None)
            if fresh and before is not None:
                by = self.clobbered.setdefault(number, {})
                by[before] = by.get(before, 0) + 1
            part = (which_a, which_b)
            if begins:
                total.begun = self._fresh()
            for i, s in scales:
                s.used(m, v, total.begun, (a, b)[i], part[i])
            if begins:
                if total.parts != {part}:  # the same product once more loses nothing
                    self._lose(total)
                total.parts.clear()
                total.count = 0
                old = CONSTANT
            if which_a is not None and which_b is not None:
                if part in total.parts:
                    self.clash("twice", op, m, v, 0, a[1], b[1])
                total.parts.add(part)
            if total.read and not begins:
                for axis, was, now in ((0, old[0], a[0]), (1, old[1], b[0])):
                    if apart(was, now):
                        self.clash("stale", op, m, v, axis, was, now)
            total.unread, total.read, total.member = number, False, m.index
            total.count += 1
            self.made[number] = self.made.get(number, 0) + 1
            self.shares.setdefault((number, m.index), [0, 0])[0] += 1
            for axis, was, now, across, n in ((0, old[0], a[0], b[0], height), (1, old[1], b[0], a[0], width)):
                if not was:
                    continue
                if abs(apart(was, now) or 0) >= n:
                    self.clash("mixed", op, m, v, axis, was, now)
                elif now and across and was[0] != now[0] and (was[0] == across[0] or now[0] == across[0]):
                    self.clash("transposed", op, m, v, axis, was, now)
            axes = frozenset([x[0] for x in (a[0], b[0]) if x]) or _SOME
            if not a[1] or not b[1]:
                axes |= _summed(a, b) | _summed(b, a)
            tile = (join(old[0], a[0]), join(old[1], b[0]), axes)
            if columns is None:
                self._frags.setdefault(m.number, {})[key] = tile
            else:
                assert tmem is not None
                self._fill(m, region, tmem.tmem, (0, 0, v[at]), tile[0], tile[1], axes, (m.cta.rank,), number)
                for k in region[1:]:
                    self._sums[owner, k] = total

        return of_pair if paired else mma


def _watches(program: Program) -> list[Watch]:
    """What is followed beside labels, in the order in which it is: only what the program has something for."""
    said = mentions(program)
    needed = {
        mask_end: "where" in said, numbering: "argmin" in said or "argmax" in said, fills: selects(program),
        relations: not COMPARISONS.isdisjoint(said),
        collected: reduces(program), beyond: bool(prefix_tensors(program)), overwritten: bool(shared(program)),
    }  # fmt: skip
    return [watch for watch, wanted in needed.items() if wanted]


def _in_turn(parts: tuple[Handler, ...]) -> Handler:
    if len(parts) == 2:
        first, second = parts

        def pair(m: Member, v: tuple[Any, ...]) -> None:
            first(m, v)
            second(m, v)

        return pair

    def handler(m: Member, v: tuple[Any, ...]) -> None:
        for part in parts:
            part(m, v)

    return handler


def _kept(tile: Tile, keep: int | None) -> Tile:
    return (tile[0] if keep == 0 else None, tile[1] if keep == 1 else None, tile[2])


def _summed(one: Tile, other: Tile) -> Axes:
    """The axis that a product sums over, where one operand alone says it and nothing is known of what that, as it was loaded, runs along otherwise:
    what a product has made may be summed over an axis that the result has again, as in a transform of blocks, `H x H^T`."""
    return frozenset([SUMMED + one[1][0]]) if one[1] and one[0] == UNKNOWN and not other[1] and not one[2] else NO_PRODUCT


_SOME: Axes = frozenset({""})
"""The axes of a product of operands of which nothing is known."""


def _shape(op: Op, operand: str) -> tuple[int, int]:
    """Rows and columns of an operand of a product, as it is read."""
    e = op.operands[operand]
    t = e.type if isinstance(e, Expr) else None
    if isinstance(t, TmemT):
        return t.lanes, t.cols
    return (t.shape[0], t.shape[-1]) if isinstance(t, (ViewT, FragT)) else (1, 0)


def _roles_of(op: Op, plan: Plan) -> tuple[str, str]:
    """How an operation touches global memory and its view: `r`, `w` or nothing."""
    space = view = ""
    for e in effects_of(op, plan.program):
        for t in e.touches if isinstance(e, Issue) else (e,) if isinstance(e, Touch) else ():
            if t.space == "gmem":
                space = "w" if "w" in t.mode else "r"
            elif t.space == "smem" and t.operand == "view":
                view = "w" if "w" in t.mode else "r"
    return space, view


__all__ = ["Clash", "Event", "ValueWalk"]
