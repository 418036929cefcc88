"""Which loads of row vectors every lane of a row has done with when one of them stores the row's new value: a reduction along the rows gathers what all
lanes of a row hold, so that its result waits for what each of them had loaded into it."""

from __future__ import annotations

from typing import NamedTuple

from cake_ir.fact import fact
from cake_ir.program import Assign, Expr, For, If, Program, Stmt, op_of, statements
from cake_ir.types import FragT
from cake_verify.analyses import ranges

_ALONG_ROWS = frozenset({"reduce", "sum", "finish", "amax_scale", "argmin", "argmax", "scan", "excess"})
"""Reductions whose lanes exchange what they hold, where their axis is 1."""


class _Held(NamedTuple):
    """By what each lane loaded itself, and by what all lanes of its row had loaded, a value was made."""

    own: frozenset[int] = frozenset()
    row: frozenset[int] = frozenset()

    def join(self, other: _Held) -> _Held:
        return _Held(self.own | other.own, self.row | other.row)


_NOTHING = _Held()


@fact
def heard(program: Program) -> dict[int, frozenset[int]]:
    """By stores of row vectors, the loads of row vectors that all lanes of a row have finished with before its value exists."""
    out: dict[int, frozenset[int]] = {}
    for block in program.body:
        _Rows(program, block.role).walk(block.body, {}, out)
    return out


_DEEP = 2
"""Loops within each other whose rounds are compared: every one of them walks its body again."""


class _Rows:
    """Follows the values of one role in the order of the text."""

    def __init__(self, program: Program, role: str) -> None:
        self.program, self.role = program, role
        self.around = 0  # loops whose rounds are being compared

    def walk(self, body: tuple[Stmt, ...], held: dict[str, _Held], out: dict[int, frozenset[int]]) -> None:
        """Of names that an arm binds nothing is known behind it; of those that a loop binds, what holds behind every round of it, if it surely has one."""
        for s in body:
            if isinstance(s, For):
                bound = _bound(s.body)
                behind = self._rounds(s, held, bound)
                self.walk(s.body, {n: h for n, h in held.items() if n not in bound}, out)
                for name in bound:
                    held.pop(name, None)
                held |= behind
            elif isinstance(s, If):
                for arm in (s.then, s.orelse):
                    self.walk(arm, dict(held), out)
                for name in _bound(s.then) | _bound(s.orelse):
                    held.pop(name, None)
            else:
                _step(s, held, out)

    def _rounds(self, loop: For, held: dict[str, _Held], bound: set[str]) -> dict[str, _Held]:
        """What holds of the names that a loop binds behind each of its rounds: behind the first one, as far as every further one keeps it."""
        if loop.lo is None or loop.hi is None or self.around == _DEEP or ranges.of(self.program, self.role, loop.hi).lo <= ranges.of(self.program, self.role, loop.lo).hi:
            return {}
        kept = dict(held)
        self.around += 1
        self.walk(loop.body, kept, {})
        while True:
            again = dict(kept)
            self.walk(loop.body, again, {})
            less = {n: _Held(h.own & again[n].own, h.row & again[n].row) if n in bound else h for n, h in kept.items() if n in again}
            if less == kept:
                self.around -= 1
                return {n: h for n, h in kept.items() if n in bound}
            kept = less


def _step(s: Stmt, held: dict[str, _Held], out: dict[int, frozenset[int]]) -> None:
    """What one operation makes, and what a store knows of the lanes of its rows."""
    op = op_of(s)
    if op is None:
        return
    value, found = op.operands.get("value"), _NOTHING
    if op.name == "load" and op.attrs.get("form") == "rowvec" and "tensor" in op.attrs:
        found = _Held(frozenset({op.id}))
    elif op.name == "compute" and isinstance(value, Expr):
        found = _of(value, held)
    elif op.name == "store" and isinstance(x := op.operands.get("x"), Expr) and isinstance(x.type, FragT) and x.type.form == "rowvec":
        out[op.id] = _of(x, held).row
    for name in s.targets if isinstance(s, Assign) else ():
        held[name] = found


def _bound(body: tuple[Stmt, ...]) -> set[str]:
    """Names that statements bind, those inside loops and arms too."""
    return {t for s in statements(body) if isinstance(s, Assign) for t in s.targets}


def _of(e: Expr, held: dict[str, _Held]) -> _Held:
    if e.op == "var":
        return held.get(str(e.attrs["name"]), _NOTHING)
    found = _NOTHING
    for a in e.args:
        found = found.join(_of(a, held))
    if e.op in _ALONG_ROWS and (e.attrs.get("axis") == 1 or (e.op == "finish" and isinstance(e.type, FragT) and e.type.form == "rowvec")) and not e.attrs.get("partial"):
        return _Held(frozenset(), found.own | found.row)
    return found


__all__ = ["heard"]
