"""The statements of a schedule's syntax tree in their places, and the calls that declare its names."""

from __future__ import annotations

import ast
from collections.abc import Callable

from cake_ir.record import record

Around = tuple[ast.For | ast.If, ...]


@record(eq=False)
class Placed:
    """A statement of a role block: the statements it stands among, its place there, the loops and branches around it."""

    node: ast.stmt
    role: str
    among: list[ast.stmt]
    index: int
    around: Around

    @property
    def line(self) -> int:
        return self.node.lineno

    @property
    def call(self) -> ast.Call | None:
        """The call that the statement consists of, or that it binds to a name."""
        value = getattr(self.node, "value", None)
        return value if isinstance(value, ast.Call) else None

    @property
    def name(self) -> str:
        """The operation that the statement calls, if it is nothing but a call."""
        return called(self.call) if isinstance(self.node, ast.Expr) and self.call is not None else ""

    def calls(self, *names: str) -> bool:
        """Whether the statement is nothing but a call of one of these operations."""
        return self.name in names

    @property
    def next(self) -> ast.stmt | None:
        return self.among[self.index + 1] if self.index + 1 < len(self.among) else None


def called(call: ast.Call) -> str:
    """The last part of the name that is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


def option(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """What a call gives for a parameter, by name or by place."""
    found = next((k.value for k in call.keywords if k.arg == name), None)
    if found is None and position is not None and position < len(call.args):
        return call.args[position]
    return found


def placed(function: ast.FunctionDef, source: Callable[[ast.AST], str]) -> list[Placed]:
    """Every statement of every role block in text order; `source` gives the text of a node."""
    out: list[Placed] = []

    def walk(body: list[ast.stmt], role: str, around: Around) -> None:
        for i, node in enumerate(body):
            out.append(Placed(node, role, body, i, around))
            if isinstance(node, (ast.For, ast.If)):
                walk(node.body, role, (*around, node))
                walk(node.orelse, role, (*around, node))
            elif isinstance(node, ast.With):
                walk(node.body, role, around)

    for node in function.body:
        if isinstance(node, ast.With):
            walk(node.body, source(node.items[0].context_expr), ())
    return out


def declarations(function: ast.FunctionDef) -> dict[str, ast.Call]:
    """The call that declares each name."""
    out: dict[str, ast.Call] = {}
    for node in function.body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = zip(target.elts, value.elts, strict=False) if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [(target, value)]
            out.update({t.id: v for t, v in pairs if isinstance(t, ast.Name) and isinstance(v, ast.Call)})
    return out


__all__ = ["Placed", "called", "declarations", "option", "placed"]
