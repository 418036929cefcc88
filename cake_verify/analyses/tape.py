"""Scalar expressions laid out flat: every part once, after what it reads, for evaluation at many places.

Resolved expressions share parts, and reading one as a tree reads a part as often as it is mentioned. What this gives is what
`scalar_operations.apply` gives of every node: None where anything in it is not known, both sides of a choice included.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cake_ir.fact import fact
from cake_ir.program import Expr, Program
from cake_verify.analyses.scalar_operations import BINARY
from cake_verify.analyses.trips import resolver_of

if TYPE_CHECKING:
    from cake_verify.analyses.positions import Position

LEAVES = frozenset({"param", "var", "field", "role_index", "ld"})
"""Nodes whose value depends on where they are read."""

_UNARY: dict[str, Callable[[Any, Any], Any]] = {
    "neg": lambda x, _: -x, "not": lambda x, _: not x, "cast": lambda x, _: x if isinstance(x, int) else None,
}  # fmt: skip


class Tape:
    """`code` has a function and the places of its operands for each part, in order, behind the values of `leaves` and constants."""

    __slots__ = ("code", "direct", "known", "leaves", "roots", "runs")

    def __init__(self, exprs: Sequence[Expr], plain: bool = False) -> None:
        """`plain`: the expressions are numbers that arguments alone decide, as `evaluate` gives them."""
        self.leaves: list[tuple[int, str, str, Expr]] = []
        self.known: list[Any] = []
        self.code: list[tuple[Callable[[Any, Any], Any] | None, int, int, int]] = []
        inner: list[Expr] = []
        at: dict[int, int] = {}
        for e in exprs:
            self._leaf(e, at, inner, plain)
        for e in inner:
            at[id(e)] = len(self.known) + len(self.code)
            self.code.append(self._step(e, at))
        self.roots = [at[id(e)] for e in exprs]
        self.runs = 0
        self.direct: Callable[[list[Any]], list[Any]] | None = None

    def _leaf(self, e: Expr, at: dict[int, int], inner: list[Expr], plain: bool) -> None:
        """Give constants and what depends on the place a number; `inner` has the others, operands first."""
        if id(e) in at:
            return
        at[id(e)] = len(self.known)
        if e.op == "const":
            self.known.append(e.attrs["value"])
        elif e.op == "param" or (e.op in LEAVES and not plain):
            self.leaves.append((len(self.known), e.op, str((e.args[0] if e.op == "field" else e).attrs.get("name")), e))
            self.known.append(None)
        elif e.op == "select" or (len(e.args) == 1 and e.op in _UNARY and not (plain and e.op == "cast")) or (len(e.args) == 2 and e.op in BINARY):
            for a in e.args:
                self._leaf(a, at, inner, plain)
            inner.append(e)
        else:
            self.known.append(None)  # no operation of uniform scalars

    @staticmethod
    def _step(e: Expr, at: dict[int, int]) -> tuple[Callable[[Any, Any], Any] | None, int, int, int]:
        places = [at[id(a)] for a in e.args]
        if e.op == "select":
            return None, places[0], places[1], places[2]
        if e.op == "mul" and any([a.op == "const" for a in e.args]):
            return operator.mul, places[0], places[1], 0  # its digits grow by as many only
        return (_UNARY[e.op], places[0], places[0], 0) if len(places) == 1 else (BINARY[e.op], places[0], places[1], 0)

    def run(self, p: Position) -> list[Any]:
        """The values of the expressions at a position."""
        v = self.known.copy()
        args, names = p.args, p.names
        for k, op, name, e in self.leaves:
            if op == "param":
                v[k] = args.get(name)
            elif op == "field":
                tile = names.get(name)
                v[k] = tile.get(e.attrs["name"]) if isinstance(tile, dict) else None
            else:
                v[k] = p.leaf(e)
        return self._run(v)

    def given(self, args: Mapping[str, Any]) -> list[Any]:
        """The values of plain expressions for some arguments."""
        v = self.known.copy()
        for k, _, name, _ in self.leaves:
            v[k] = args.get(name)
        return self._run(v)

    def _run(self, v: list[Any]) -> list[Any]:
        self.runs += 1
        if self.runs == OFTEN and self.code and not any([f is _UNARY["cast"] for f, *_ in self.code]):
            self.direct = _compiled(self)
        if self.direct is not None and None not in v:
            with suppress(ArithmeticError, ValueError):
                return self.direct(v)
        put = v.append
        for f, a, b, c in self.code:
            x, y = v[a], v[b]
            if x is None or y is None:
                put(None)
            elif f is None:
                z = v[c]
                put(None if z is None else y if x else z)
            else:
                try:
                    put(f(x, y))
                except (ArithmeticError, ValueError):
                    put(None)
        return [v[k] for k in self.roots] if len(self.roots) > 1 else [v[self.roots[0]]] if self.roots else []


def _compiled(t: Tape) -> Callable[[list[Any]], list[Any]]:
    """The same as one function, for values of leaves that are all known and operations that all have a result."""
    scope: dict[str, Any] = {"__builtins__": {}}
    lines = []
    for k, (f, a, b, c) in enumerate(t.code, len(t.known)):
        if f is None:
            lines.append(f"v{k} = v{b} if v{a} else v{c}")
        elif f in _SIGNS:
            lines.append(f"v{k} = v{a} {_SIGNS[f]} v{b}")
        else:
            scope[f"f{k}"] = f
            lines.append(f"v{k} = f{k}(v{a}, v{b})")
    given = "".join([f"v{k}, " for k in range(len(t.known))])
    body = "".join([f"    {line}\n" for line in lines])
    exec(compile(f"def direct(v):\n    {given}= v\n{body}    return [{', '.join([f'v{k}' for k in t.roots])}]\n", "<tape>", "exec"), scope)
    return scope.pop("direct")  # type: ignore[no-any-return]  # popped, lest the function and its globals hold each other


_SIGNS: dict[Callable[[Any, Any], Any], str] = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%", operator.lt: "<", operator.le: "<=",
    operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!=",
}  # fmt: skip
OFTEN = 120
"""Runs after which a tape is worth compiling."""


@fact
def tape(program: Program, exprs: tuple[Expr, ...]) -> Tape:
    """The tape of resolved expressions, kept for the next place."""
    return Tape(exprs)


@fact
def plain_tape(program: Program, exprs: tuple[Expr, ...]) -> Tape:
    """The tape of expressions that arguments alone decide; names stand for what `let`s say."""
    resolve = resolver_of(program, "")
    return Tape([resolve(e) for e in exprs], plain=True)


def evaluate(program: Program, e: Expr, args: Mapping[str, Any]) -> Any:
    """The value of `e`, None where an argument is not given, a division is by zero, or the expression needs more than arguments."""
    return e.attrs["value"] if e.op == "const" else args.get(str(e.attrs["name"])) if e.op == "param" else plain_tape(program, (e,)).given(args)[0]
