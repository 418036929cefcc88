"""Where each name of a role must be declared, and where its value is still needed.

A name is a place. Its accesses fall into *webs*: a web starts where a statement rebinds the name without reading it (or rebinds it to
another type) and ends before the next such statement of the same block. A web is declared in the innermost block that holds it all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cake_ir.program import Assign, Do, Expr, For, If, Op, Stmt
from cake_ir.types import FragT, ListT, PairT, Type


@dataclass(frozen=True, slots=True)
class Web:
    """One place: its name, the type it is declared with (the weakest of what is assigned to it), and whether several paths write it, so that
    no single expression says what it holds."""

    name: str
    type: Type
    joined: bool = False


@dataclass(slots=True)
class Webs:
    """`declared[id(stmt)]`: webs that begin at a statement; `live[id(stmt)]`: names whose value is read after it; `joined`: statements that
    write a joined web."""

    declared: dict[int, list[Web]] = field(default_factory=dict)
    joined: set[int] = field(default_factory=set)
    live: dict[int, frozenset[str]] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)


def expressions(stmt: Stmt) -> Iterator[Expr]:
    """The expressions that a statement itself evaluates (not those of its nested statements)."""
    if isinstance(stmt, Assign):
        yield from _of(stmt.value)
    elif isinstance(stmt, Do):
        yield from _of(stmt.op)
    elif isinstance(stmt, For):
        yield from (e for e in (stmt.lo, stmt.hi) if e is not None)
    else:
        yield stmt.cond


def _of(value: Expr | Op) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
        return
    for operand in value.operands.values():
        if isinstance(operand, tuple):
            yield from operand
        elif operand is not None:
            yield operand


def names_in(e: Expr) -> Iterator[str]:
    """Names of variables that an expression reads."""
    return (str(x.attrs["name"]) for x in e.parts() if x.op == "var")


def reads(stmt: Stmt) -> frozenset[str]:
    """Names that a statement reads before it writes anything, nested statements included."""
    found = {name for e in expressions(stmt) for name in names_in(e)}
    for inner in children(stmt):
        found |= {name for s in inner for name in reads(s)}
    return frozenset(found)


def children(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The blocks nested in a statement."""
    if isinstance(stmt, For):
        return (stmt.body,)
    if isinstance(stmt, If):
        return (stmt.then, stmt.orelse)
    return ()


def written_here(stmt: Stmt) -> dict[str, Type]:
    """Names that the statement itself binds, with the types it binds them to."""
    if not isinstance(stmt, Assign):
        return {}
    t = stmt.value.type
    if len(stmt.targets) == 1:
        return {stmt.targets[0]: t}
    if isinstance(t, PairT):
        return dict(zip(stmt.targets, (t.value, t.index), strict=True))
    return dict.fromkeys(stmt.targets, t)


def _touches(stmt: Stmt, name: str) -> bool:
    return name in reads(stmt) or name in written_here(stmt) or any(_touches(s, name) for b in children(stmt) for s in b)


def _written(stmt: Stmt) -> Iterator[tuple[str, Type]]:
    yield from written_here(stmt).items()
    for b in children(stmt):
        for s in b:
            yield from _written(s)


def _writers(stmt: Stmt, name: str) -> Iterator[Stmt]:
    if name in written_here(stmt):
        yield stmt
    for b in children(stmt):
        for s in b:
            yield from _writers(s, name)


def weakest(types: list[Type]) -> Type:
    """The type of a place that holds all of `types`: the partial one where a finished value may stand for it."""
    for t in types:
        if isinstance(t, FragT) and t.partial:
            return t
        if isinstance(t, PairT | ListT) and t.value.partial:
            return t
    return types[0]


def analyse(body: tuple[Stmt, ...], carried: frozenset[str] = frozenset()) -> Webs:
    """Webs and liveness of a role's body; the places of `carried` outlive the loop bodies that write them."""
    webs = Webs()
    counts: dict[str, int] = {}
    for s in body:
        for name, _ in _written(s):
            counts[name] = counts.get(name, 0) + 1
    webs.written = counts
    for name in counts:
        _split(body, name, webs, name in carried)
    _liveness(body, frozenset(), webs)
    return webs


def _split(block: tuple[Stmt, ...], name: str, webs: Webs, carried: bool) -> None:
    groups: list[list[Stmt]] = []
    current: Type | None = None
    for s in block:
        if not _touches(s, name):
            continue
        here = written_here(s).get(name)
        fresh = here is not None and (name not in reads(s) or (current is not None and not _same_place(current, here)))
        if fresh or not groups:
            groups.append([s])
        else:
            groups[-1].append(s)
        if here is not None:
            current = here
    for group in groups:
        first = group[0]
        if len(group) == 1 and not carried and name not in written_here(first) and not (isinstance(first, For) and first.var == name):
            for inner in children(first):
                _split(inner, name, webs, carried)
            continue
        writers = [w for s in group for w in _writers(s, name)]
        joined = len(writers) > 1 and any(w not in group for w in writers)
        if writers:
            webs.declared.setdefault(id(first), []).append(Web(name, weakest([written_here(w)[name] for w in writers]), joined))
        if joined:
            webs.joined.update(map(id, writers))


def _same_place(a: Type, b: Type) -> bool:
    """Whether a value of type `b` may be written over a place of type `a`."""
    if isinstance(a, FragT) and isinstance(b, FragT):
        return a.with_(partial=None, parent=None) == b.with_(partial=None, parent=None) and (a.partial == b.partial or b.partial is not None)
    if isinstance(a, PairT) and isinstance(b, PairT):
        return _same_place(a.value, b.value) and _same_place(a.index, b.index)
    return a == b


def _liveness(block: tuple[Stmt, ...], out: frozenset[str], webs: Webs) -> frozenset[str]:
    """Record what is live after each statement of a block and return what is live before it."""
    for s in reversed(block):
        webs.live[id(s)] = webs.live.get(id(s), frozenset()) | out
        if isinstance(s, For):
            head = out
            while True:
                grown = head | _liveness(s.body, head | out, webs)
                if grown == head:
                    break
                head = grown
            out = head | out
        elif isinstance(s, If):
            out = _liveness(s.then, out, webs) | _liveness(s.orelse, out, webs)
        else:
            out = out - frozenset(written_here(s))
        out = out | {n for e in expressions(s) for n in names_in(e)}
    return out
