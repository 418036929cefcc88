"""Statements put in, taken out, and moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cake_ir.program import Barrier
from cake_verify.proposals.source import Placed, Proposal, Source, called, option

_TOUCH = frozenset("tma_load tma_store cp_async load store ldmatrix mma tmem_load tmem_store".split())


def repeated(s: Source) -> Iterator[Proposal]:
    """The second of two equal neighbours."""
    for p in s.statements:
        if isinstance(p.node, ast.Expr) and p.next is not None and s.source(p.next) == s.source(p.node):
            yield Proposal("duplicate", (s.remove(p.next),), f"once is enough: leave out the second `{s.source(p.node)}`", p.next.lineno, -3)


def removed(s: Source) -> Iterator[Proposal]:
    """Synchronisation left out."""
    for p in s.statements:
        if p.name in ("wait", "arrive", "commit", "sync"):
            yield Proposal("remove", (s.remove(p.node),), f"leave out `{s.source(p.node)}`", p.line)
        if isinstance(p.node, ast.If) and len(p.node.body) == 1 and not p.node.orelse and isinstance(p.node.body[0], ast.Expr):
            yield Proposal("unguard", (s.replace(p.node, s.source(p.node.body[0])),), "do it without the condition", p.line)


def swapped(s: Source) -> Iterator[Proposal]:
    """Neighbours in the other order; a statement one or two places later."""
    for p in s.statements:
        q = p.next
        if q is None or not _simple(p.node) or not _simple(q) or _defines(p.node) & _named(q):
            continue
        if _orders(p.node) or _orders(q):
            if p.name in ("arrive", "commit") and isinstance(q, ast.Expr) and isinstance(q.value, ast.Call) and called(q.value) == "mma_wait":
                yield Proposal("wait-first", (s.replace(p.node, s.source(q)), s.replace(q, s.source(p.node))), f"`{s.source(q)}` first, then `{s.source(p.node)}`", p.line, -1)
            late = isinstance(q, ast.Expr) and isinstance(q.value, ast.Call) and called(q.value) in ("wait", "fence_proxy", "mma_wait", "store_wait", "cp_wait") and _acts(p.node)
            yield Proposal("swap", (s.replace(p.node, s.source(q)), s.replace(q, s.source(p.node))), f"`{s.source(q)}` first", p.line, -1 if late else 0)
    for p in s.statements:
        if p.name in ("arrive", "commit") or (isinstance(p.node, ast.If) and len(p.node.body) == 1 and not p.node.orelse):
            for on in (1, 2, 3):
                j = p.index + on
                if j < len(p.among):
                    yield Proposal("later", (s.remove(p.node), s.after(p.among[j], _shifted(s, p.node))), f"`{_head(s, p.node)}` {on} statement{'s' if on > 1 else ''} later", p.line, 0.2 * on)
        if p.name in ("wait", "mma_wait", "cp_wait", "store_wait", "fence_proxy", "sync", "pdl_wait"):
            for on in (1, 2):
                j = p.index - on
                if j >= 0 and not isinstance(p.among[j], ast.With):
                    yield Proposal("earlier", (s.before(p.among[j], _shifted(s, p.node)), s.remove(p.node)), f"`{_head(s, p.node)}` {on} statement{'s' if on > 1 else ''} earlier", p.line, 0.2 * on)


_ORDERS = frozenset("wait arrive commit sync fence_proxy mma_wait store_wait cp_wait cp_commit tmem_wait step pdl_wait".split())


def _orders(node: ast.stmt) -> bool:
    """Whether a statement synchronises, so that its place among others matters to them."""
    return any(isinstance(n, ast.Call) and called(n) in _ORDERS for n in ast.walk(node))


def _defines(node: ast.stmt) -> set[str]:
    return {t.id for t in node.targets if isinstance(t, ast.Name)} if isinstance(node, ast.Assign) else set()


def _named(node: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _simple(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Expr, ast.Assign)) and node.lineno == node.end_lineno


def _shifted(s: Source, node: ast.stmt) -> str:
    """A statement's text, for a place in the same block."""
    return s.source(node)


def _head(s: Source, node: ast.stmt) -> str:
    return s.source(node).split("\n")[0]


def _slot_of(s: Source, role: str, ring: str, before: int) -> str | None:
    """The name that holds the role's latest step of a ring in front of a line."""
    found = None
    for p in s.of_role(role):
        if not isinstance(p.node, ast.Assign) or not isinstance(p.node.targets[0], ast.Name) or p.call is None or called(p.call) not in ("step", "at"):
            continue
        if p.call.args and s.source(p.call.args[0]) == ring and (p.line <= before or found is None):
            found = p.node.targets[0].id
    return found


def missing(s: Source) -> Iterator[Proposal]:
    """Waits and arrivals that a barrier's declaration promises and a role does not have."""
    for b in s.program.barriers.values():
        for role, kind in (*((r, "wait") for r in b.cons), *((r, "arrive") for r in b.prod)):
            mine = s.of_role(role)
            have = [p for p in mine if p.name in (kind, "commit") and p.call is not None and p.call.args and s.source(p.call.args[0]) == b.name]
            filled = kind == "arrive" and any(p.call is not None and (x := option(p.call, "barrier")) is not None and s.source(x) == b.name for p in mine)
            if filled:
                continue
            verb = "commit" if kind == "arrive" and b.arrive == "mma" else kind
            if verb == "commit" and not have:
                yield from _commit(s, role, b)
            for p in mine:
                if not isinstance(p.node, (ast.Expr, ast.Assign)) and not (isinstance(p.node, ast.For) and verb != "wait"):
                    continue
                slot = _slot_of(s, role, b.pipeline, p.line)
                if slot is None:
                    continue
                text = f"lm.{verb}({b.name}, stage={slot})"
                rank = 0.0 if not have else 2.0
                if verb == "wait":
                    steps = isinstance(p.node, ast.Assign) and isinstance(p.node.value, ast.Call) and called(p.node.value) == "step" and s.source(p.node.value.args[0]) == b.pipeline
                    if steps:
                        yield Proposal("insert-wait", (s.after(p.node, text),), f"insert `{text}`", p.line, rank)
                    elif _acts(p.node):
                        yield Proposal("insert-wait", (s.before(p.node, text),), f"insert `{text}`", p.line, rank + 0.3)
                elif p.name in ("mma_wait", "mma", "tmem_wait", "wait", "sync", "store_wait", "fence_proxy") or isinstance(p.node, ast.For) or _acts(p.node):
                    near = 0.0 if p.name in ("mma_wait", "tmem_wait", "fence_proxy", "store_wait") else 0.3
                    yield Proposal("insert-arrive", (s.after(p.node, text),), f"insert `{text}`", p.line, rank + near)
                    yield Proposal("insert-arrive", (s.after(p.node, f"lm.{verb}({b.name}, stage={slot}.prev())"),), f"insert `lm.{verb}({b.name}, stage={slot}.prev())`", p.line, rank + near + 1)


def _commit(s: Source, role: str, b: Barrier) -> Iterator[Proposal]:
    """A commit behind the last product that writes or reads what those who wait for the barrier touch then."""
    wanted: set[str] = set()
    for other in b.cons:
        mine = s.of_role(other)
        for k, p in enumerate(mine):
            if p.name == "wait" and p.call is not None and p.call.args and s.source(p.call.args[0]) == b.name:
                for q in mine[k + 1 :]:
                    if q.name == "wait":
                        break
                    wanted |= _named(q.node) & {*s.program.views, *s.program.tmems} if not isinstance(q.node, (ast.For, ast.If)) else set()
    steps = [p for p in s.of_role(role) if p.call is not None and called(p.call) == "step" and p.call.args and s.source(p.call.args[0]) == b.pipeline]
    last = next((p for p in reversed(s.of_role(role)) if p.name == "mma" and _named(p.node) & wanted), None)
    if last is None or not steps or not isinstance(steps[-1].node, ast.Assign) or not isinstance(steps[-1].node.targets[0], ast.Name):
        return
    step = steps[-1]
    chain = [*last.around, last.node]
    place = next((n for n in chain if any(n is x for x in step.among)), None)
    if place is not None:
        text = f"lm.commit({b.name}, stage={steps[-1].node.targets[0].id})"
        yield Proposal("insert-arrive", (s.after(place, text),), f"insert `{text}`", last.line, -3.0)


def _acts(node: ast.stmt) -> bool:
    return not isinstance(node, (ast.For, ast.If, ast.With)) and any(isinstance(n, ast.Call) and called(n) in _TOUCH for n in ast.walk(node))


def meetings(s: Source) -> Iterator[Proposal]:
    """Meetings, fences and waits for groups in front of what touches memory or releases it."""
    calls = {r: {called(n) for q in s.of_role(r) if not q.around for n in ast.walk(q.node) if isinstance(n, ast.Call)} for r in s.program.roles}
    for p in s.statements:
        if isinstance(p.node, ast.With) or p.role not in calls:
            continue
        names = {called(n) for n in ast.walk(p.node) if isinstance(n, ast.Call)} if not isinstance(p.node, (ast.For, ast.If)) else set[str]()
        head = isinstance(p.node, (ast.For, ast.If))
        reads = names & {"load", "store", "tma_store", "ldmatrix", "arrive", "mma", "sync", "ld"}
        if not reads and not head:
            continue
        mine = calls[p.role]
        for n in s.program.named.values():
            if p.role in n.roles:
                yield _put(s, p, f"lm.sync({n.name})", "insert-sync", 0.0 if n.per_member or len(n.roles) > 1 else 0.2)
        if "mma" in mine:
            yield _put(s, p, "lm.mma_wait(pending=0)", "insert-drain", 0.0 if names & {"arrive", "store"} else 0.4)
            yield _put(s, p, "lm.mma_wait(pending=1)", "insert-drain", 0.5)
        if names & {"tma_store", "mma", "sync", "arrive"}:
            yield _put(s, p, "lm.fence_proxy()", "insert-fence", 0.0 if names & {"sync", "tma_store"} else 0.3)
        if "tma_store" in mine and names & {"store", "sync", "arrive"}:
            for pending in ("0", "1"):
                yield _put(s, p, f"lm.store_wait(pending={pending})", "insert-store-wait", 0.2 * int(pending))
        if "cp_async" in mine and names & {"sync", "load", "ldmatrix", "arrive"}:
            for pending in ("0", "1", "2"):
                yield _put(s, p, f"lm.cp_wait(pending={pending})", "insert-copy-wait", 0.2 * int(pending))
        if "tmem_load" in mine:
            yield _put(s, p, 'lm.tmem_wait("ld")', "insert-tmem-wait", 0.0 if names & {"store", "arrive"} else 0.3)
    for p in s.statements:
        guarded = bool(p.around) and isinstance(p.around[-1], ast.If)  # groups are counted, so that a commit stands outside
        if p.name == "cp_async" and not guarded and not _is_call(p.next, "cp_async", "cp_commit"):
            yield Proposal("insert-commit", (s.after(p.node, "lm.cp_commit()"),), "insert `lm.cp_commit()`", p.line)
        copies = isinstance(p.node, ast.If) and any(isinstance(n, ast.Call) and called(n) == "cp_async" for n in ast.walk(p.node))
        if copies and not _is_call(p.next, "cp_commit") and not any(isinstance(n, ast.Call) and called(n) == "cp_commit" for n in ast.walk(p.node)):
            yield Proposal("insert-commit", (s.after(p.node, "lm.cp_commit()"),), "insert `lm.cp_commit()`", p.line, -0.2)
        if p.name == "tma_store" and p.among[-1] is p.node:
            yield Proposal("insert-store-wait", (s.after(p.node, "lm.store_wait(pending=0)"),), "insert `lm.store_wait(pending=0)`", p.line, 0.3)
    for t in s.program.turns.values():
        for p in s.of_role(t.role):
            if _acts(p.node) or p.name in ("mma_wait", "wait", "arrive"):
                yield Proposal("insert-turn", (s.before(p.node, f"lm.wait({t.name})"),), f"insert `lm.wait({t.name})`", p.line)
                yield Proposal("insert-turn", (s.after(p.node, f"lm.arrive({t.name})"),), f"insert `lm.arrive({t.name})`", p.line, 0.1)
    for role in {p.role for p in s.statements}:
        tops = [p for p in s.of_role(role) if not p.around]
        if tops and any(called(n) == "tma_store" for q in s.of_role(role) for n in ast.walk(q.node) if isinstance(n, ast.Call)):
            yield Proposal("insert-store-wait", (s.after(tops[-1].node, "lm.store_wait(pending=0)"),), "insert `lm.store_wait(pending=0)` at the end", tops[-1].node.end_lineno or 0, 0.1)


def _is_call(node: ast.stmt | None, *names: str) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node.value) in names


def _put(s: Source, p: Placed, text: str, kind: str, rank: float) -> Proposal:
    return Proposal(kind, (s.before(p.node, text),), f"insert `{text}`", p.line, rank)
