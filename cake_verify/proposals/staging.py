"""A store into shared memory that is not there: of a value that nobody uses, into a view that is read and that nothing fills."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cake_ir.program import Assign, Expr, Op, View, statements
from cake_ir.types import FragT
from cake_verify.proposals.source import Placed, Proposal, Source, called

_FILLS = frozenset({"store", "tma_load", "cp_async", "cp_async_rows", "bulk_load", "tma_gather", "send"})
_READS = frozenset({"tma_store", "load", "ldmatrix", "bulk_store", "ld"})
_AFTER = frozenset({"fence_proxy", "sync", "arrive", "tma_store", "store_wait"})


def unfilled(s: Source) -> Iterator[Proposal]:
    """The store of the unused value that `Source.unused` names."""
    found = _value(s)
    if found is None:
        return
    role, t = found
    for view, reader, text in _empty(s):
        place = _back(s, reader) if reader.role == role else _place(s, role, view)
        if place is None:
            continue
        for receiver in _receivers(s, place, role, view, reader, text):
            value = _part(s, place, t, view, receiver)
            if value:
                flat = (t.rows, t.cols) if t.rank > 1 else (1, t.cols)
                turned = ".cols(" not in value and receiver.partition("[")[0] == view.name and len(view.shape) > 1 and view.shape[0] != view.shape[1] and flat == view.shape[::-1]
                line = f"{receiver}{'.T' if turned else ''}.store({value})"
                yield Proposal("staged", (s.before(place.node, line),), f"insert `{line}`", place.line, -2.0 if receiver != view.name else -1.5)


def _value(s: Source) -> tuple[str, FragT] | None:
    """The role and the type of the unused value."""
    for block in s.program.body:
        for x in statements(block.body):
            if isinstance(x, Assign) and s.unused in x.targets:
                t = x.value.type if isinstance(x.value, (Op, Expr)) else None
                if isinstance(t, FragT):
                    return block.role, t
    return None


def _root(e: ast.AST) -> str:
    while isinstance(e, (ast.Attribute, ast.Subscript, ast.Call)):
        e = e.func if isinstance(e, ast.Call) else e.value
    return e.id if isinstance(e, ast.Name) else ""


def _aliases(s: Source) -> dict[tuple[str, str], tuple[str, Placed]]:
    """Names that a role gives to views or parts of them: the view, and where."""
    out: dict[tuple[str, str], tuple[str, Placed]] = {}
    for p in s.statements:
        if isinstance(p.node, ast.Assign) and isinstance(p.node.targets[0], ast.Name):
            root = _root(p.node.value)
            known = out[p.role, root][0] if (p.role, root) in out else root
            called_here = p.call is not None and called(p.call) not in ("rows", "cols")
            if known in s.program.views and not called_here:
                out[p.role, p.node.targets[0].id] = (known, p)
    return out


def _empty(s: Source) -> Iterator[tuple[View, Placed, str]]:
    """Views that are read and not filled: the view, who reads it, and as what."""
    aliases = _aliases(s)
    filled: set[str] = set()
    read: dict[str, tuple[Placed, str]] = {}
    for p in s.statements:
        if isinstance(p.node, (ast.For, ast.If, ast.With)):
            continue
        for n in ast.walk(p.node):
            if not isinstance(n, ast.Call) or not isinstance(n.func, ast.Attribute):
                continue
            root = _root(n.func.value)
            view = aliases[p.role, root][0] if (p.role, root) in aliases else root
            if view in s.program.views and called(n) in _FILLS:
                filled.add(view)
            elif view in s.program.views and called(n) in _READS:
                read.setdefault(view, (p, s.source(n.func.value)))
            elif called(n) == "mma":
                for a in n.args[1:3]:
                    root = _root(a)
                    view = aliases[p.role, root][0] if (p.role, root) in aliases else root
                    if view in s.program.views:
                        read.setdefault(view, (p, s.source(a)))
    for name, (p, text) in read.items():
        if name not in filled:
            yield s.program.views[name], p, text


def _back(s: Source, reader: Placed) -> Placed | None:
    """The statement in front of which the store belongs: the fence and the one meeting that hand the view to its reader."""
    chain = [*reader.around, reader.node]
    at = reader
    for n in reversed(chain):  # a reader under a condition of its own: what hands over stands in front of the condition
        at = next(p for p in s.of_role(reader.role) if p.node is n)
        if any(not isinstance(x, ast.Pass) for x in at.among[: at.index]):
            break
    allowed = {"sync": 1, "fence_proxy": 1}
    found = at
    for x in at.among[: at.index][::-1]:
        if isinstance(x, ast.Pass) or (isinstance(x, ast.Assign) and found is at):
            continue
        name = called(x.value) if isinstance(x, ast.Expr) and isinstance(x.value, ast.Call) else ""
        if not allowed.get(name):
            break
        allowed[name] -= 1
        found = next(p for p in s.of_role(reader.role) if p.node is x)
    return found


def _place(s: Source, role: str, view: View) -> Placed | None:
    """The statement in front of which the store belongs: the first that hands the view on behind the value's last definition."""
    mine = s.of_role(role)
    made = [p for p in mine if isinstance(p.node, (ast.Assign, ast.AugAssign, ast.Expr)) and _makes(s, p)]
    if not made:
        return None
    aliases = _aliases(s)
    for p in mine:
        if p.line <= made[-1].line or p.name not in _AFTER:
            continue
        if p.name == "store_wait" or (p.name == "sync" and _waits_first(p)):
            continue  # these say that the slot is free
        if p.name == "arrive" and p.call is not None and p.call.args:
            b = s.program.barriers.get(s.source(p.call.args[0]))
            if b is None or role in b.cons or not _reads(s, b.cons, view, aliases):
                continue
        return p
    return None


def _waits_first(p: Placed) -> bool:
    """Whether a meeting follows a wait for earlier stores: it is in front of what is written."""
    before = p.among[p.index - 1] if p.index else None
    return isinstance(before, ast.Expr) and isinstance(before.value, ast.Call) and called(before.value) == "store_wait"


def _reads(s: Source, roles: tuple[str, ...], view: View, aliases: dict[tuple[str, str], tuple[str, Placed]]) -> bool:
    names = {view.name, *(n for (r, n), (v, _) in aliases.items() if r in roles and v == view.name)}
    return any(isinstance(n, ast.Name) and n.id in names for r in roles for p in s.of_role(r) for n in ast.walk(p.node))


def _makes(s: Source, p: Placed) -> bool:
    if isinstance(p.node, ast.Expr):
        return p.name == "mma" and p.call is not None and bool(p.call.args) and _root(p.call.args[0]) == s.unused
    target = p.node.targets[0] if isinstance(p.node, ast.Assign) else p.node.target  # type: ignore[attr-defined]  # assignments only
    return isinstance(target, ast.Name) and target.id == s.unused


def _receivers(s: Source, place: Placed, role: str, view: View, reader: Placed, text: str) -> list[str]:
    """What to store to: a name of the role for the view or its part, what the reader names, the view itself."""
    out = [n for (r, n), (v, p) in _aliases(s).items() if r == role and v == view.name and p.line < place.line]
    names = {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
    bound = {t.id for p in s.of_role(role) if isinstance(p.node, ast.Assign) for t in p.node.targets if isinstance(t, ast.Name)} | {view.name, role, *s.program.tunables, *s.program.lets}
    if names <= bound and ".T" not in text:
        whole = text if reader.role == role else text.split(".rows(")[0].split(".cols(")[0]
        out.append(whole)
    return list(dict.fromkeys(out))


def _part(s: Source, place: Placed, t: FragT, view: View, receiver: str) -> str:
    """The value, cast to the view's type; of a value that is several views wide the part of the static round."""
    cols = view.shape[-1]
    value = s.unused
    if t.rank > 1 and t.cols > cols and t.cols % cols == 0:
        rounds = [x.target.id for x in place.around if isinstance(x, ast.For) and isinstance(x.target, ast.Name) and isinstance(x.iter, ast.Call) and called(x.iter) == "static_range"]
        if not rounds:
            return ""
        value = f"{value}.cols({cols} * {rounds[-1]}, {cols})"
    elif t.rank > 1 and t.cols != cols and t.rows != cols:
        return ""
    return value if t.dtype == view.dtype else f"lm.cast({value}, lm.{view.dtype})"


__all__ = ["unfilled"]
