"""Accesses of global memory against the extents that parameters declare, with the numbers of one run.

Loads in bulk are never clipped. Copies through a tensor map are clipped by hardware, though one that writes may not start in front of the tensor, and `clip=True` clips; everything
else touches what its coordinates, shape and mask say. A mask counts where it compares positions (`lm.iota(.., base=b) < n`, `lm.in_bounds(..)`); of others nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake_ir.program import Expr, If, Op, Param, Program
from cake_ir.types import FragT, ScalarT
from cake_verify.analyses import ranges, trips
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.positions import declared_values
from cake_verify.analyses.running_offsets import prefix_tensors
from cake_verify.analyses.sites import sites
from cake_verify.analyses.state import Member

Limit = tuple[int | None, int | None]
"""How many rows and columns of a fragment a mask lets through, None where it does not limit them."""

Read = Callable[[Member, tuple[Any, ...]], Any]


class Bounds:
    """Position masks by member and name, and the check of each access."""

    def __init__(self, plan: Plan, args: dict[str, Any]) -> None:
        self.plan, self.args = plan, args
        self.positions: dict[tuple[int, str], tuple[int, int] | None] = {}
        self.masks: dict[tuple[int, str], Limit | None] = {}
        self.found: list[tuple[Op, Member, int, int, int]] = []

    # ------------------------------------------------------------ masks

    def binding(self, op: Op, targets: tuple[str, ...]) -> Read | None:
        """What keeps a position or a mask that is bound to a name."""
        tree = self.plan.code.ops[op.id].trees.get("value")
        if tree is None or len(targets) != 1:
            return None
        name = targets[0]
        at = self.position(tree) if tree.op in ("iota", "add", "sub") else None
        if at is not None:

            def position(m: Member, v: tuple[Any, ...]) -> None:
                self.positions[m.number, name] = at(m, v)

            return position
        limit = self.limit(tree)
        if limit is None:
            return None

        def mask(m: Member, v: tuple[Any, ...]) -> None:
            self.masks[m.number, name] = limit(m, v)

        return mask

    def limit(self, e: Expr) -> Read | None:
        """How far a mask reaches: a function of the event, whose answer is None where that is not known. None where `e` is no such mask."""
        if e.op == "var":
            name = str(e.attrs["name"])
            return lambda m, v: self.masks.get((m.number, name))
        if e.op in ("lt", "le") and len(e.args) == 2:
            at, bound = self.position(e.args[0]), self.scalar(e.args[1])
            if at is None or not isinstance(e.args[1].type, ScalarT):
                return None
            more = e.op == "le"

            def compared(m: Member, v: tuple[Any, ...]) -> Limit | None:
                where, n = at(m, v), bound(m, v)
                if where is None or n is None:
                    return None
                left = max(0, n + more - where[1])
                return (left, None) if where[0] == 0 else (None, left)

            return compared
        if e.op == "in_bounds":
            rows, cols = self.scalar(e.args[1]), self.scalar(e.args[2])
            return lambda m, v: (max(0, rows(m, v)), max(0, cols(m, v)))
        if e.op in ("and", "bitand"):
            parts = [self.limit(a) for a in e.args]
            if any(p is None for p in parts):
                return None

            def both(m: Member, v: tuple[Any, ...]) -> Limit | None:
                found = [p(m, v) for p in parts if p is not None]
                if any(x is None for x in found):
                    return None
                least = [min((x[k] for x in found if x[k] is not None), default=None) for k in (0, 1)]
                return least[0], least[1]

            return both
        return None

    def position(self, e: Expr) -> Read | None:
        if e.op == "var":
            name = str(e.attrs["name"])
            return lambda m, v: self.positions.get((m.number, name))
        if e.op == "iota":
            axis, base = int(e.attrs["axis"]), self.scalar(e.args[1] if len(e.args) > 1 else None)  # type: ignore[call-overload]  # an axis number
            if isinstance(e.type, FragT) and e.type.rank == 1:
                axis = 1  # elements of a line, of which every access has the innermost run
            return lambda m, v: (axis, base(m, v))
        if e.op in ("add", "sub") and len(e.args) == 2:  # `b + lm.iota(..)`
            x, by = e.args if e.op == "sub" or isinstance(e.args[1].type, ScalarT) else e.args[::-1]
            start = self.position(x) if isinstance(by.type, ScalarT) and by.op in ("dyn", "const") else None
            return None if start is None else _shifted(start, self.scalar(by), -1 if e.op == "sub" else 1)
        return None

    @staticmethod
    def scalar(e: Expr | None) -> Read:
        if e is None:
            return lambda m, v: 0
        if e.op == "dyn":
            i = int(e.attrs["i"])  # type: ignore[call-overload]  # positions are integers
            return lambda m, v: v[i]
        value = e.attrs.get("value")
        return lambda m, v: value

    # ------------------------------------------------------------ accesses

    def access(self, op: Op) -> Read | None:
        """The check of an access of a tensor with declared extents; None where nothing can be said of it."""
        tensor = self.plan.program.tensors.get(str(op.attrs.get("tensor")))
        code = self.plan.code.ops[op.id]
        if tensor is not None and op.name in ("tma_store", "tma_reduce"):
            return self._corner(op, code.index.get("coords", -1))
        if tensor is not None and op.name == "bulk_load":
            return self._stretch(op, tensor)
        if tensor is None or tensor.kind != "gmem" or op.name not in ("load", "store", "atomic", "ld") or op.attrs.get("clip") or not tensor.extents:
            return None
        coords = op.operands.get("coords")
        entries = coords if isinstance(coords, tuple) else (op.operands.get("i"),)
        extents = [e if isinstance(e, int) else self.args.get(e) for e in reversed(tensor.extents)]
        if len(entries) != len(extents) or not self._plain(op, entries):
            return None
        at = code.index.get("coords", code.index.get("i", -1))
        single = "coords" not in code.index
        rows, cols = _covered(op)
        mask = code.trees.get("mask")
        limit = self.limit(mask) if mask is not None else None
        if at < 0 or (op.operands.get("mask") is not None and limit is None):
            return None
        along = {0: 0} if _by_rows(op) else {0: 1, 1: 0}
        filling = self.plan.ranks > 1 and _padded(self.plan.program)

        def check(m: Member, v: tuple[Any, ...]) -> None:
            passed: Limit | None = (None, None) if limit is None else limit(m, v)
            if passed is None:
                return
            sizes = [rows if passed[0] is None else min(rows, passed[0]), cols if passed[1] is None else min(cols, passed[1])]
            if not all(sizes):
                return
            for k, extent in enumerate(extents):
                first = v[at] if single else v[at][k]
                n = sizes[along[k]] if k in along else 1
                if filling and isinstance(extent, int) and first >= extent:
                    return  # tiles that only fill a cluster lie outside as a whole: a rule of their own
                if isinstance(extent, int) and isinstance(first, int) and not 0 <= first <= first + n <= extent and len(self.found) < 8:
                    self.found.append((op, m, k, first + n - 1 if first >= 0 else first, extent))
                    return

        return check

    def _stretch(self, op: Op, tensor: Param) -> Read | None:
        """The check of a load in bulk from a tensor of one axis: nothing clips it."""
        index, extent = self.plan.code.ops[op.id].index, tensor.extents[0] if len(tensor.extents) == 1 else None
        at, count, size = index.get("offset", -1), index.get("n", -1), extent if isinstance(extent, int) else self.args.get(str(extent))
        if at < 0 or count < 0 or not isinstance(size, int) or not self._plain(op, (op.operands["offset"], op.operands["n"])):
            return None

        def check(m: Member, v: tuple[Any, ...]) -> None:
            first, n = v[at], v[count]
            if n and not 0 <= first <= first + n <= size and not (self.plan.ranks > 1 and first >= size) and len(self.found) < 8:
                self.found.append((op, m, 0, first + n - 1 if first >= 0 else first, size))

        return check

    def _corner(self, op: Op, at: int) -> Read | None:
        """The check of a copy into a tensor: no coordinate of its first element is negative."""
        coords = op.operands.get("coords")
        if at < 0 or not isinstance(coords, tuple) or not self._plain(op, coords):
            return None

        def check(m: Member, v: tuple[Any, ...]) -> None:
            for k, first in enumerate(v[at]):
                if isinstance(first, int) and first < 0 and len(self.found) < 8:
                    self.found.append((op, m, k, first, 0))
                    return

        return check

    def _plain(self, op: Op, entries: tuple[Any, ...]) -> bool:
        """Whether nothing read from memory decides where, or whether, an access happens: a run only invents such numbers."""
        site = self.plan.sites[op.id]
        resolve = trips.resolver_of(self.plan.program, site.role)
        if any(s.kind == "grouped" for s in self.plan.program.schedulers.values()):
            return False
        exprs = [e for e in entries if isinstance(e, Expr)] + [s.cond for s, _ in site.around if isinstance(s, If) and not self._kept(resolve(s.cond))]
        mask = op.operands.get("mask")
        exprs += [mask] if isinstance(mask, Expr) else []
        return all(not isinstance(e.type, FragT) or e is mask for e in exprs) and not any(self._read(site.role, resolve(e)) for e in exprs)

    def _kept(self, cond: Expr) -> bool:
        """Whether a condition reads only tensors that no loop is as long as, and of which `lm.assume_values` says what runs keep to."""
        read = {str(n.attrs["tensor"]) for n in cond.parts() if n.op == "ld" and "tensor" in n.attrs}
        lengths = {str(n.attrs.get("tensor")) for x in trips.loops(self.plan.program) for e in (x.lo, x.hi) for n in e.parts() if n.op == "ld"}
        prefix = prefix_tensors(self.plan.program)
        return bool(read) and all(t not in lengths and t not in prefix and declared_values(self.plan.program, t) is not None for t in read)

    def _read(self, role: str, e: Expr, depth: int = 16) -> bool:
        """Whether something read from memory is part of a resolved expression, or of the bounds of a loop whose variable is."""
        around = {x.stmt.var: x for x in trips.loops(self.plan.program) if x.role == role}
        for n in e.parts():
            loop = around.get(str(n.attrs.get("name"))) if n.op == "var" else None
            if n.op == "ld" or (n.op == "var" and (role, n.attrs.get("name")) in sites(self.plan.program).results) or (loop is not None and (not depth or any(self._read(role, b, depth - 1) for b in (loop.lo, loop.hi)))):
                return True
        return False


def _padded(program: Program) -> bool:
    """Whether a scheduler hands out tiles beyond the last one, so that all CTAs of a cluster have one."""
    resolve = trips.resolver_of(program, "")
    return any(c > 1 and not ranges.of(program, None, resolve(n)).multiple_of(c) for d in program.schedulers.values() for n, c in zip(d.tiles, d.cluster or (), strict=False))


def _shifted(start: Read, by: Read, sign: int) -> Read:
    def shifted(m: Member, v: tuple[Any, ...]) -> tuple[int, int] | None:
        at, n = start(m, v), by(m, v)
        return None if at is None or not isinstance(at[1], int) or not isinstance(n, int) else (at[0], at[1] + sign * n)

    return shifted


def _covered(op: Op) -> tuple[int, int]:
    """Rows and columns of the fragment on the other side of an access."""
    x = op.operands.get("x")
    t = x.type if isinstance(x, Expr) else op.type
    return (t.rows, t.cols) if isinstance(t, FragT) else (1, 1)


def _by_rows(op: Op) -> bool:
    x = op.operands.get("x")
    t = x.type if isinstance(x, Expr) else op.type
    return isinstance(t, FragT) and t.form == "rowvec"
