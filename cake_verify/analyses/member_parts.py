"""Which part of rows and columns each member's values are of: by how much reads, positions and operands of products move from one member to the next.

Members that divide a result take parts side by side: everything that is combined for one part moves with the member's index by one and the same
amount along an axis. What moves by as much the other way belongs to another member.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from cake_ir.derive.structure import nodes
from cake_ir.program import Expr, For, If, Op, Program
from cake_ir.record import record
from cake_ir.span import Span
from cake_ir.types import FragT, ListT, PairT, ViewT
from cake_verify.analyses.affine import steps
from cake_verify.analyses.sites import Site, sites

Moves = Mapping[int, tuple[Op, Span, str]]
"""By how much something moves from a member to the next, with one operation that says so, where, and the tensor or view that it accesses there."""
Value = tuple[Moves, Moves, Moves]
"""Of the rows, the columns, and of what lies beyond both."""

ROWS, COLS, OUTER = 0, 1, 2
_NAMES = 4
"""Names of names that are followed."""
_NOTHING: Value = ({}, {}, {})
_REDUCES = frozenset({"reduce", "reduce_across", "sum"})
_SELECTS = frozenset({"topk", "argmin", "argmax"})
"""What is kept of each row, whatever the columns."""
_PLAIN = frozenset({"load", "ldmatrix", "ld", "compute", "reduce", "mma", "sum", "finish"})
"""Operations that give all members the same where their operands are the same."""
_PLACED = frozenset({"iota", "in_bounds"})
_NO_VALUES = frozenset({"frag", "rowvec", "colvec", "topk_list"})


@record(eq=False)
class Meeting:
    """Two that meet in `site` and move along an axis by `one` and by `other`; `kind` is `combined`, `multiplied` or `stored`."""

    site: Site
    kind: str
    axis: int
    one: tuple[int, Op, Span]
    other: tuple[int, Op, Span]


@record(eq=False)
class Same:
    """A store of what is the same for all members at places that move with them; `product` is where it is multiplied."""

    site: Site
    step: int
    product: Site


class MemberParts:
    """The values of one role, in the order of the text."""

    def __init__(self, program: Program, role: str) -> None:
        self.program, self.role = program, role
        self.values: dict[str, Value] = {}
        self.made: dict[str, Site] = {}
        """By accumulator the product that filled it last."""
        self.written = {_declared(v) for s in sites(program).of_role(role) if s.op.name not in ("load", "ldmatrix", "ld") and isinstance(v := s.op.operands.get("view"), Expr)}

    def found(self) -> Iterator[Meeting | Same]:
        for s in sites(self.program).of_role(self.role):
            yield from self._site(s)

    # ------------------------------------------------------------ operations

    def _site(self, s: Site) -> Iterator[Meeting | Same]:
        op = s.op
        if op.name == "mma":
            yield from self._product(s)
            return
        x = op.operands.get("x") if op.name in ("store", "atomic") and "view" not in op.operands else None  # where in shared memory a part is kept is nobody's business
        if isinstance(x, Expr) and isinstance(x.type, FragT):
            met: list[tuple[int, Moves, Moves]] = []
            value, places, coords = self._of(x, op, met), self._place(op), op.operands.get("coords")
            for e in (*(coords if isinstance(coords, tuple) else ()), op.operands.get("mask")):
                if isinstance(e, Expr) and isinstance(e.type, FragT):
                    value = self._joined(value, self._of(e, op, met), met)
            for axis, one, other in met:
                yield from self._meet(s, "combined", axis, one, other)
            for axis in (ROWS, COLS, OUTER):
                yield from self._meet(s, "stored", axis, value[axis], places[axis])
            if places[COLS] and not any(value):  # what has parts of members in it is no one's copy
                yield from self._same(s, x, places[COLS])
            return
        if not s.targets:
            return
        seen = nodes(self.program)[op.id]
        if op.name not in ("load", "ldmatrix") and not any(n.op in _PLACED or (n.op == "var" and (n.attrs["name"] in self.values or n.attrs["name"] in self.made)) for n in seen):
            for t in s.targets:  # nothing in it is anybody's part
                self.values.pop(t, None)
                self.made.pop(t, None)
            return
        met = []
        if op.name in ("load", "ldmatrix"):
            value = self._place(op)
        else:
            value = _NOTHING
            for e in (e for k, e in op.operands.items() if isinstance(e, Expr) and isinstance(e.type, (FragT, PairT, ListT)) and k != "like"):
                value = self._joined(value, self._of(e, op, met), met)
            if op.name in _REDUCES:
                value = _reduced(value, op.attrs.get("axis"))
        for axis, one, other in met:
            yield from self._meet(s, "combined", axis, one, other)
        v = op.operands.get("value")
        product = next((self.made[n] for n in _names(v) if n in self.made), None) if isinstance(v, Expr) and self.made else None
        for t in s.targets:
            self._hold(t, value)
            self.made.pop(t, None)
            if product is not None:
                self.made[t] = product

    def _product(self, s: Site) -> Iterator[Meeting]:
        op = s.op
        a, b = (self._operand(op, k) for k in ("a", "b"))
        acc, init = op.operands["acc"], op.operands.get("init")
        yield from self._meet(s, "multiplied", COLS, a[COLS], b[COLS])
        if not isinstance(acc, Expr) or acc.op != "var":
            return
        name = str(acc.attrs["name"])
        fresh = isinstance(init, Expr) and init.op == "const" and bool(init.attrs["value"])
        held = _NOTHING if fresh else self.values.get(name, _NOTHING)
        met: list[tuple[int, Moves, Moves]] = []
        self._hold(name, self._joined(held, (a[ROWS], b[ROWS], _both(a[OUTER], b[OUTER])), met))
        for axis, one, other in met:
            yield from self._meet(s, "combined", axis, one, other)
        self.made[name] = s

    def _hold(self, name: str, value: Value) -> None:
        if value[0] or value[1] or value[2]:
            self.values[name] = value
        else:
            self.values.pop(name, None)

    def _operand(self, op: Op, key: str) -> Value:
        e = op.operands[key]
        if not isinstance(e, Expr):
            return _NOTHING
        return self._sliced(op, e, op.spans.get(key, op.span)) if isinstance(e.type, ViewT) else self._of(e, op, [])

    def _meet(self, s: Site, kind: str, axis: int, one: Moves, other: Moves) -> Iterator[Meeting]:
        for c, (op, span, source) in one.items():
            if -c in other and c not in other and -c not in one:
                odd = source if c < 0 else other[-c][2]
                if abs(c) not in self._everywhere.get(odd, ()):
                    yield Meeting(s, kind, axis, (c, op, span), (-c, *other[-c][:2]))

    @cached_property
    def _everywhere(self) -> dict[str, set[int]]:
        """By tensor or view by how much the role's accesses of it move: who takes both parts, as a rotation of halves does, means both."""
        found: dict[str, set[int]] = {}
        for s in sites(self.program).of_role(self.role):
            places = [self._place(s.op), *(self._sliced(s.op, e, s.op.span) for k in ("a", "b") if isinstance(e := s.op.operands.get(k), Expr) and isinstance(e.type, ViewT))]
            for c, (_, _, source) in (x for p in places for moves in p for x in moves.items()):
                found.setdefault(source, set()).add(c)
        return found

    def _same(self, s: Site, x: Expr, places: Moves) -> Iterator[Same]:
        """A product that no member's part is in, stored at a part of each."""
        assert isinstance(x.type, FragT)  # asked by the caller
        product = next((self.made[n] for n in sorted(_names(x)) if n in self.made), None)
        if product is None or not places or self._differs(s, x):
            return
        for c in places:
            if abs(c) == x.type.cols:
                yield Same(s, c, product)

    # ------------------------------------------------------------ what differs between members

    @cached_property
    def _varies(self) -> set[str]:
        """The names that may hold different values in different members, wherever they are bound."""
        found, own = sites(self.program), sites(self.program).of_role(self.role)
        said: list[tuple[str, list[Expr]]] = [(name, [b.value, *_around(b.path)]) for (role, name), bound in found.bindings.items() if role == self.role for b in bound]
        for s in own:
            operands = [e for k, o in s.op.operands.items() if k != "like" for e in (o if isinstance(o, tuple) else (o,)) if isinstance(e, Expr)]
            acc = s.op.operands.get("acc")
            targets = (*s.targets, str(acc.attrs["name"])) if isinstance(acc, Expr) and acc.op == "var" else s.targets
            said += [(t, [*operands, *_around(s.path)]) for t in targets]
        varies = {t for s in own if s.op.name not in _PLAIN for t in s.targets}
        varies |= {name for name, exprs in said if any(self._own(e) for e in exprs)}
        grown = True
        while grown:
            grown = False
            for name, exprs in said:
                if name not in varies and any(not varies.isdisjoint(_names(e)) for e in exprs):
                    varies.add(name)
                    grown = True
        return varies

    def _own(self, e: Expr) -> bool:
        """Whether an expression mentions the member, or memory that the role itself writes."""
        return any(n.op in ("role_index", "slot_index") or (n.op == "view" and str(n.attrs["view"]) in self.written) for n in e.parts())

    def _differs(self, s: Site, x: Expr) -> bool:
        """Whether members may store different values, or only some of them store."""
        return any(self._own(e) or not self._varies.isdisjoint(_names(e)) for e in (x, *_around(s.path)))

    # ------------------------------------------------------------ where things are

    def _step(self, e: Expr) -> int:
        return steps(self.program, self.role, e).get("member", 0)

    def _along(self, e: Expr) -> int:
        """How a coordinate moves along its axis, whichever end that is counted from."""
        found = steps(self.program, self.role, e)
        c = found.get("member", 0)
        if c < 0 and len(found) > 1 and all(n < 0 for n in found.values()):
            return -c  # tiles and rounds run down as well: all of it is the other way round, as rows of a sequence that is turned over
        return c

    def _place(self, op: Op) -> Value:
        """How what an access touches moves: rows and columns of its fragment, and the rest."""
        view, coords = op.operands.get("view"), op.operands.get("coords")
        t = op.type if isinstance(op.type, FragT) else x.type if isinstance(x := op.operands.get("x"), Expr) else None
        if not isinstance(t, FragT):
            return _NOTHING
        if isinstance(view, Expr):
            found = self._sliced(op, view, op.spans.get("view", op.span))
            if t.form == "rowvec" and isinstance(view.type, ViewT) and view.type.rank == 1:
                return found[COLS], {}, found[ROWS]
            return found
        if not isinstance(coords, tuple):
            return _NOTHING
        span = op.spans.get("coords", op.span)
        moved: list[Moves] = [{c: (op, span, str(op.attrs.get("tensor")))} if isinstance(e, Expr) and not isinstance(e.type, FragT) and (c := self._along(e)) else {} for e in coords]
        moved += [{}] * (3 - len(moved))
        if t.form == "rowvec":
            return moved[0], {}, _both(moved[1], moved[2])
        if t.form == "colvec":
            return {}, moved[0], _both(moved[1], moved[2])
        return moved[1], moved[0], moved[2]

    def _sliced(self, op: Op, e: Expr, span: Span) -> Value:
        """How a part of a view moves, along its rows and columns as they are read."""
        moved: list[Moves] = [{}, {}]
        e = self._spelled_out(e)
        turned, source = 0, _declared(e)
        while e.args:
            if e.op == "T":
                turned ^= 1
            elif e.op in ("rows", "cols"):
                k = (0 if e.op == "rows" else 1) ^ turned
                c = self._step(e.args[1])
                if c:
                    moved[k] = _both(moved[k], {c: (op, e.span if e.span.line else span, source)})
            e = self._spelled_out(e.args[0])
        return moved[0], moved[1], {}

    def _spelled_out(self, e: Expr) -> Expr:
        """What a name of a part of a view stands for, where it has one meaning."""
        for _ in range(_NAMES):
            bound = sites(self.program).bindings.get((self.role, str(e.attrs["name"])), ()) if e.op == "var" else ()
            if len(bound) != 1:
                break
            e = bound[0].value
        return e

    def _of(self, e: Expr, op: Op, met: list[tuple[int, Moves, Moves]]) -> Value:
        """How the rows and columns of an expression's value move."""
        known: dict[int, Value] = {}
        for n in e.parts():  # operands first
            if n.op == "var":
                known[id(n)] = self.values.get(str(n.attrs["name"]), _NOTHING)
            elif n.op == "iota":
                c = self._step(n.args[1]) if len(n.args) > 1 else 0
                moves: Moves = {c: (op, n.span if n.span.line else op.span, "")} if c else {}
                known[id(n)] = (moves, {}, {}) if n.attrs.get("axis") == 0 else ({}, moves, {})
            elif n.op == "add" and (placed := _placed(n)) is not None:
                iota, base = placed
                c = self._step(base) + (self._step(iota.args[1]) if len(iota.args) > 1 else 0)
                moves = {c: (op, n.span if n.span.line else op.span, "")} if c else {}
                known[id(n)] = (moves, {}, {}) if iota.attrs.get("axis") == 0 else ({}, moves, {})
            elif n.op == "in_bounds":
                known[id(n)] = self._bounds(n, op)
            elif n.op in _NO_VALUES or not n.args:
                known[id(n)] = _NOTHING
            else:
                value = _NOTHING
                for a in n.args:
                    value = self._joined(value, known[id(a)], met)
                known[id(n)] = _reduced(value, n.attrs.get("axis")) if n.op in _REDUCES else _reduced(value, 1) if n.op in _SELECTS else value
        return known[id(e)]

    def _bounds(self, e: Expr, op: Op) -> Value:
        """What is left of a tile's rows and columns falls by as much as its start moves."""
        moved: list[Moves] = [{}, {}]
        operands = e.attrs.get("operands")
        for name, a in zip(operands if isinstance(operands, tuple) else (), e.args, strict=False):
            if name in ("rows", "cols") and (c := self._step(a)):
                moved[name == "cols"] = {-c: (op, a.span if a.span.line else op.span, "")}
        return moved[0], moved[1], {}

    def _joined(self, one: Value, other: Value, met: list[tuple[int, Moves, Moves]]) -> Value:
        if one is _NOTHING or one is other:
            return other
        if other is _NOTHING:
            return one
        met += [(k, one[k], other[k]) for k in range(3) if one[k] and other[k]]
        return _both(one[0], other[0]), _both(one[1], other[1]), _both(one[2], other[2])


def _placed(e: Expr) -> tuple[Expr, Expr] | None:
    """Positions and the number that is added to them, `row0 + lm.iota(x, 0)`."""
    return next(((a, b) for a, b in (e.args, e.args[::-1]) if a.op == "iota" and not isinstance(b.type, FragT)), None)


def _both(one: Moves, other: Moves) -> Moves:
    return {**other, **one} if one and other else one or other


def _reduced(value: Value, axis: object) -> Value:
    return (value[0], {}, value[2]) if axis == 1 else ({}, value[1], value[2]) if axis == 0 else ({}, {}, value[2])


def _around(path: tuple[For | If, ...]) -> list[Expr]:
    """What decides whether and how often something in a place runs."""
    return [e for p in path for e in ((p.cond,) if isinstance(p, If) else (p.lo, p.hi)) if e is not None]


def _names(e: Expr) -> list[str]:
    """The names that an expression mentions, always in the same order: what is told first must not depend on a set's."""
    return [str(n.attrs["name"]) for n in e.parts() if n.op == "var"]


def _declared(e: Expr) -> str:
    """The declared view of which an expression is a part."""
    while e.args:
        e = e.args[0]
    return str(e.attrs["view"]) if e.op == "view" else ""


__all__ = ["COLS", "OUTER", "ROWS", "Meeting", "MemberParts", "Same"]
