"""Numbers that a tile starts anew and that the loop behind never changes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cake_ir.fault import Fault
from cake_ir.frontend.scope import Elaboration


def standing(el: Elaboration, names: Iterable[ast.Name], use: ast.AST, what: str) -> None:
    """N069 for a number that starts anew with every tile, in front of a loop, and that nothing changes, though a branch or a sum in or behind the loop asks for it."""
    for n in names:
        v = el.env.get(n.id) if _literal(el.source.text, n.id) else None
        if not isinstance(v, (bool, int, float)) or el.block is None:
            continue
        started = _start_of(el.block, n.id)
        if started is not None and started.loop.lineno <= n.lineno:
            message = f"`{n.id}` is {v} in every round and behind them: {what}, and nothing changes it in the loop in front of which it starts"
            el.faults.append(Fault("N069", message, el.span(use), related=((el.span(started.at), "starts here"), (el.span(started.loop.iter), "this loop")), help=f"bring it up to date in the loop, `{n.id} = ..`, or write the number",
                                   facts={"name": n.id, "found": v}))  # fmt: skip
            return


def nothing_added(el: Elaboration, node: ast.BinOp) -> None:
    """N069 for a zero with a name that a tile or number is added to."""
    if isinstance(node.op, (ast.Add, ast.Sub)) and el.rounds:
        standing(el, [n for n in (node.left, node.right) if isinstance(n, ast.Name)], node, "what is added here is nothing")


def bound_names(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that statements bind, those inside them too."""
    for s in body:
        targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, (ast.AugAssign, ast.For)) else []
        for t in targets:
            yield from [x.id for x in (t.elts if isinstance(t, ast.Tuple) else (t,)) if isinstance(x, ast.Name)]
        if isinstance(s, (ast.For, ast.If)):
            yield from bound_names(s.body)
            yield from bound_names(s.orelse)


def _literal(text: str, name: str) -> bool:
    """Whether a text binds a name to a number, as that is usually spelled: hardly any has such a line in a role's block, and trees take longer to look through."""
    bound = f" {name} = "
    at = text.find(bound)
    while at >= 0:
        end = at + len(bound)
        if text[end : end + 1] in "-0123456789TF" and text[text.rfind("\n", 0, at) + 1 : at].isspace():
            return True
        at = text.find(bound, end)
    return False


@dataclass(slots=True)
class _Start:
    """A literal that a name is bound to in a loop over tiles, and the first counted loop behind that."""

    at: ast.Assign
    loop: ast.For


def _start_of(block: ast.AST, name: str) -> _Start | None:
    """Where a name of a role's block starts, if nothing else binds it there."""
    if sum([n == name for n in bound_names(getattr(block, "body", ()))]) != 1:
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
