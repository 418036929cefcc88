"""Static loops that are written out while they are elaborated, because something in them needs their variable as a number."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from cake_ir.program import Stmt

if TYPE_CHECKING:
    from collections.abc import Callable

    from cake_ir.frontend.scope import Elaboration


def steps_back(node: ast.For, text: str) -> bool:
    """Whether the body asks for a slot `.prev(..)` at a distance that depends on the loop's variable; few texts have the word at all."""
    assert isinstance(node.target, ast.Name)
    name = node.target.id
    return "prev" in text and any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "prev" and any(isinstance(x, ast.Name) and x.id == name for a in n.args for x in ast.walk(a))
        for s in node.body
        for n in ast.walk(s)
    )  # fmt: skip


def unrolled(el: Elaboration, node: ast.For, lo: int, hi: int, block: Callable[[Elaboration, list[ast.stmt]], tuple[Stmt, ...]]) -> None:
    """The body once for each value, the variable a number in it."""
    assert isinstance(node.target, ast.Name) and el.out is not None
    found = len(el.faults)
    for i in range(lo, hi):
        if len(el.faults) > found:  # what is wrong once is wrong every time
            return
        el.env[node.target.id] = i
        el.out.extend(block(el, node.body))


def other_loop(it: ast.expr, receiver: str) -> str:
    """How a loop over something else is written."""
    if isinstance(it, (ast.List, ast.Tuple)):
        return f"`for i in {receiver}.static_range({len(it.elts)}):`; a number that follows a rule is bound in front and anew in each round, `h = h // 2`, and stays one of compile time"
    if isinstance(it, ast.Call) and isinstance(it.func, ast.Name) and it.func.id == "range":
        return f"write `{receiver}.range(..)`, or `{receiver}.static_range(..)` for a loop that is unrolled"
    return ""
