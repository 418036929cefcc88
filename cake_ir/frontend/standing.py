"""Numbers that a tile starts anew and that the loop behind never changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from cake_ir.fault import Fault
from cake_ir.frontend.scope import Elaboration


def standing(el: Elaboration, names: Iterable[ast.Name], use: ast.AST, what: str) -> None:
    """N069 for a number that starts anew with every tile, in front of a loop, and that nothing changes, though a branch or a sum in or behind the loop asks for it."""
    for n in names:
        v = el.env.get(n.id)
        if not isinstance(v, (bool, int, float)) or el.block is None:
            continue
        found = re.findall(rf"^[ \t]+{re.escape(n.id)}[ ]*=[ ]*(?:-?[0-9.e+-]+|True|False)[ ]*(?:#.*)?$", el.source.text, re.MULTILINE)  # hardly any text has one
        started = _start_of(el.block, n.id) if found else None
        if started is not None and started.loop.lineno <= n.lineno:
            message = f"`{n.id}` is {v} in every round and behind them: {what}, and nothing changes it in the loop in front of which it starts"
            el.faults.append(Fault("N069", message, el.span(use), related=((el.span(started.at), "starts here"), (el.span(started.loop.iter), "this loop")), help=f"bring it up to date in the loop, `{n.id} = ..`, or write the number",
                                   facts={"name": n.id, "found": v}))  # fmt: skip
            return


def nothing_added(el: Elaboration, node: ast.BinOp) -> None:
    """N069 for a zero with a name that a tile or number is added to."""
    if isinstance(node.op, (ast.Add, ast.Sub)) and el.rounds:
        standing(el, [n for n in (node.left, node.right) if isinstance(n, ast.Name)], node, "what is added here is nothing")


@dataclass(slots=True)
class _Start:
    """A literal that a name is bound to in a loop over tiles, and the first counted loop behind that."""

    at: ast.Assign
    loop: ast.For


def _start_of(block: ast.AST, name: str) -> _Start | None:
    """Where a name of a role's block starts, if nothing else binds it there."""
    if sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(block)) != 1:
        return None
    for tiles in ast.walk(block):
        if not isinstance(tiles, ast.For) or _over(tiles) != "tiles":
            continue
        for n in ast.walk(tiles):
            for body in (b for field in ("body", "orelse") if isinstance(b := getattr(n, field, None), list)):
                at = next((i for i, s in enumerate(body) if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name) and s.targets[0].id == name), None)
                if at is not None:
                    loop = next((s for s in body[at:] if isinstance(s, ast.For) and _over(s) in ("range", "static_range")), None)
                    return _Start(body[at], loop) if loop is not None else None
    return None


def _over(loop: ast.For) -> str:
    """What a loop runs over: `range`, `static_range`, `tiles`."""
    return loop.iter.func.attr if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute) else ""
