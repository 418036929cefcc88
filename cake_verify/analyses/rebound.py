"""What a name stands for that is bound several times in a row: `least = N`, lowered under conditions or in a few rounds of a loop of fixed length, and read behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import Any

from cake_ir.program import Assign, Do, Expr, For, If, Op, Stmt, names_read, statements
from cake_ir.span import Span
from cake_ir.types import I32

ROUNDS = 16
"""Rounds of a loop of fixed length that are written out."""
BRANCHES = 3
"""Branches that may each leave one thing or another: every one doubles what a reader of the value has to read."""


def rebound(body: tuple[Stmt, ...], every: Iterable[Stmt], twice: set[str]) -> dict[str, Expr]:
    """The last value of each name of `twice` whose bindings all stand in one list of statements and are read only behind it; `every` has all statements of the body."""
    count, registers = dict.fromkeys(twice, 0), set[str]()
    for s in every:
        if isinstance(s, Assign) and not twice.isdisjoint(s.targets):
            for name in s.targets:
                if name in count:
                    count[name] += 1
            if len(s.targets) != 1 or (isinstance(s.value, Op) and read_element(s.value) is None):
                registers.update(s.targets)
    asked = twice - registers  # what an operation is bound to is no expression, however often it is bound
    found: dict[str, Expr] = {}
    lists: list[tuple[tuple[Stmt, ...], list[list[str]]]] = []
    if asked:
        _lists(body, asked, lists)
    for stmts, targets in lists:
        here = [i for i, bound in enumerate(targets) if bound]
        for name in {name for i in here for name in targets[i]} - found.keys():
            at = [i for i in here if name in targets[i]]
            if count[name] == sum([targets[i].count(name) for i in at]) and (value := _settled(body, stmts, name, at, twice)) is not None:
                found[name] = value
    return found


def read_element(op: Op) -> Expr | None:
    """The number that an operation reads from memory, as an expression."""
    if op.name != "ld" or "tensor" not in op.attrs:
        return None
    return Expr("ld", (op.operands["i"],), {"tensor": op.attrs["tensor"], "op": op.id}, I32, op.span)  # type: ignore[arg-type]  # an index is one expression


def _lists(body: tuple[Stmt, ...], asked: set[str], into: list[tuple[tuple[Stmt, ...], list[list[str]]]]) -> list[str]:
    """Every list of statements that binds one of the names, with what each statement of it binds, inside it too; the outer ones first: a name belongs
    to the outermost that has all of its bindings. What the whole list binds is the answer."""
    place, targets = len(into), list[list[str]]()
    for s in body:
        if isinstance(s, Assign):
            targets.append([t for t in s.targets if t in asked])
        elif isinstance(s, For):
            targets.append(_lists(s.body, asked, into))
        elif isinstance(s, If):
            targets.append(_lists(s.then, asked, into) + _lists(s.orelse, asked, into))
        else:
            targets.append([])
    all_ = [t for bound in targets for t in bound]
    if all_:
        into.insert(place, (body, targets))
    return all_


def _settled(body: tuple[Stmt, ...], stmts: tuple[Stmt, ...], name: str, at: list[int], twice: set[str]) -> Expr | None:
    """What the bindings leave, where the first one does not depend on an earlier value and nobody reads what is in between."""
    begin = stmts[at[0]]
    if not isinstance(begin, Assign) or len(begin.targets) != 1 or isinstance(begin.value, Op) or _reads(begin.value, name):
        return None
    during, behind = statements(stmts[at[0] : at[-1] + 1]), statements(stmts[at[-1] + 1 :])
    if any(name in names_read(s) for s in during if not (isinstance(s, Assign) and name in s.targets)):
        return None
    mine = {id(s) for s in (*during, *behind)}
    if any(name in names_read(s) for s in statements(body) if id(s) not in mine):
        return None
    return _Fold(name, twice)(tuple(stmts[i] for i in range(at[0], at[-1] + 1) if i in at))


class _Unsaid(Exception):
    """The value is not one expression."""


class _Fold:
    """Runs bindings one after the other, on expressions."""

    def __init__(self, name: str, twice: set[str]) -> None:
        self.name, self.twice, self.branches = name, twice, 0

    def __call__(self, stmts: tuple[Stmt, ...]) -> Expr | None:
        env: dict[str, Expr] = {}
        try:
            self._run(stmts, env)
        except _Unsaid:
            return None
        return env.get(self.name)

    def _run(self, stmts: tuple[Stmt, ...], env: dict[str, Expr]) -> None:
        for s in stmts:
            if isinstance(s, Assign):
                self._bind(s, env)
            elif isinstance(s, If):
                cond, before = self._put(s.cond, env), env[self.name]
                sides = []
                for arm in (s.then, s.orelse):
                    inner = dict(env)
                    self._run(arm, inner)
                    sides.append(inner[self.name])
                if sides[0] is not before or sides[1] is not before:
                    env[self.name] = self._either(cond, before, *sides, span=s.span)
            elif isinstance(s, For):
                if any(isinstance(x, Assign) and self.name in x.targets for x in statements(s.body)):
                    for i in self._rounds(s):
                        inner = {**env, s.var: Expr("const", (), {"value": i}, I32, s.head)}
                        self._run(s.body, inner)
                        env[self.name] = inner[self.name]
            elif not isinstance(s, Do):
                raise _Unsaid

    def _either(self, cond: Expr, before: Expr, a: Expr, b: Expr, span: Span) -> Expr:
        """The value behind a branch. A bound that the branch lowers or raises is `min(before, cond ? x : before)`: what came before is worked out once."""
        if b is before and a.op in ("min", "max") and before in a.args and len(a.args) == 2:
            x = a.args[0] if a.args[1] is before else a.args[1]
            return Expr(a.op, (before, Expr("select", (cond, x, before), {}, before.type, span)), a.attrs, a.type, span)
        self.branches += 1
        if self.branches > BRANCHES:
            raise _Unsaid
        return Expr("select", (cond, a, b), {}, before.type, span)

    def _bind(self, s: Assign, env: dict[str, Expr]) -> None:
        if self.name in s.targets or not self.twice & set(s.targets):  # what else is bound several times is only missed where it is read
            value = read_element(s.value) if isinstance(s.value, Op) else s.value
            if len(s.targets) == 1 and value is not None:
                env[s.targets[0]] = self._put(value, env)
            elif self.name in s.targets:
                raise _Unsaid

    def _put(self, e: Expr, env: Mapping[str, Expr]) -> Expr:
        """An expression with what is bound here in place of its names; a name that is bound several times elsewhere may stand for anything."""
        return substituted(e, lambda n: self._of(n, env))

    def _of(self, n: Expr, env: Mapping[str, Expr]) -> Expr:
        name = str(n.attrs["name"])
        if name not in env and name in self.twice:
            raise _Unsaid
        return env.get(name, n)

    def _rounds(self, s: For) -> range:
        lo, hi = (x.attrs.get("value") if x is not None and x.op == "const" else None for x in (s.lo, s.hi))
        if not isinstance(lo, int) or not isinstance(hi, int) or not 0 < hi - lo <= ROUNDS:
            raise _Unsaid
        return range(lo, hi)


def substituted(e: Expr, of: Callable[[Expr], Expr], op: str = "var") -> Expr:
    """An expression with what `of` gives in the place of each variable, or of each node of another `op`; parts that several share stay shared."""
    made: dict[int, Expr] = {}
    for n in e.parts():  # operands first
        args = tuple([made[id(a)] for a in n.args])
        made[id(n)] = of(n) if n.op == op else n if all(map(is_, args, n.args)) else Expr(n.op, args, n.attrs, n.type, n.span)
    return made[id(e)]


def _reads(e: Any, name: str) -> bool:
    return any(n.op == "var" and n.attrs["name"] == name for n in e.parts())
