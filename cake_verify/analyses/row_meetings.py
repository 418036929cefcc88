"""Which loads of row vectors every lane of a row has done with when one of them stores the row's new value: a reduction along the rows gathers what all
lanes of a row hold, so that its result waits for what each of them had loaded into it."""

from __future__ import annotations

from typing import NamedTuple

from cake_ir.fact import fact
from cake_ir.program import Assign, Expr, For, If, Program, Stmt, op_of
from cake_ir.types import FragT

_ALONG_ROWS = frozenset({"reduce", "amax_scale", "argmin", "argmax", "scan", "excess"})
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
        _walk(block.body, {}, out)
    return out


def _walk(body: tuple[Stmt, ...], held: dict[str, _Held], out: dict[int, frozenset[int]]) -> None:
    """Follow values in the order of the text; of names that a loop or an arm binds nothing is known behind it, nor at its head."""
    for s in body:
        if isinstance(s, (For, If)):
            arms = (s.body,) if isinstance(s, For) else (s.then, s.orelse)
            bound = {t for arm in arms for t in _bound(arm)}
            for arm in arms:
                _walk(arm, {n: h for n, h in held.items() if isinstance(s, If) or n not in bound}, out)
            for name in bound:
                held.pop(name, None)
            continue
        op = op_of(s)
        if op is None:
            continue
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
    out: set[str] = set()
    for s in body:
        if isinstance(s, Assign):
            out.update(s.targets)
        for inner in (s.body,) if isinstance(s, For) else (s.then, s.orelse) if isinstance(s, If) else ():
            out |= _bound(inner)
    return out


def _of(e: Expr, held: dict[str, _Held]) -> _Held:
    if e.op == "var":
        return held.get(str(e.attrs["name"]), _NOTHING)
    found = _NOTHING
    for a in e.args:
        found = found.join(_of(a, held))
    if e.op in _ALONG_ROWS and e.attrs.get("axis") == 1 and not e.attrs.get("partial"):
        return _Held(frozenset(), found.own | found.row)
    return found


__all__ = ["heard"]
