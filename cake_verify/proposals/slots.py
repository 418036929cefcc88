"""Edits of slots, bounds and conditions: which use of a ring an operation means, how often a loop runs, when a branch is taken."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from cake_verify.proposals.source import Placed, Proposal, Source, called, option


def slots(s: Source) -> Iterator[Proposal]:
    """The slot before or after the one that an operation names; a ring that is stepped, or not."""
    for p in s.statements:
        if isinstance(p.node, (ast.For, ast.If, ast.With)):
            continue
        for node in ast.walk(p.node):
            for slot in _slots(s, node):
                yield from _moved(s, p, slot)
            if isinstance(node, ast.Call) and called(node) in ("at", "step") and node.args and s.source(node.args[0]) in s.program.rings:
                other = "step" if called(node) == "at" else "at"
                ring = s.source(node.args[0])
                bound = isinstance(p.node, ast.Assign) and p.node.value is node
                rank = (0.0 if bound else 0.6) if other == "step" else 1.0
                yield Proposal("step" if other == "step" else "no-step", (s.replace(node, f"lm.{other}({ring})"),), f"write `lm.{other}({ring})`", p.line, rank)
        if p.name == "step":  # a step whose slot nobody takes
            yield Proposal("extra-step", (s.remove(p.node),), "step the ring once", p.line, -2)


def _slots(s: Source, node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        return [k.value for k in node.keywords if k.arg == "stage" and not isinstance(k.value, ast.Constant)]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and not isinstance(node.slice, ast.Constant):
        return [node.slice]
    return []


def _moved(s: Source, p: Placed, slot: ast.expr) -> Iterator[Proposal]:
    text = s.source(slot)
    if isinstance(slot, ast.Call) and called(slot) == "prev" and isinstance(slot.func, ast.Attribute):
        base = s.source(slot.func.value)
        back = int(slot.args[0].value) if slot.args and isinstance(slot.args[0], ast.Constant) and isinstance(slot.args[0].value, int) else 1
        less = base if back == 1 else f"{base}.prev({back - 1})" if back > 2 else f"{base}.prev()"
        given = s.source(slot.args[0]) if slot.args else ""
        if given.endswith(("+ 1", "- 1")):
            yield Proposal("slot", (s.replace(slot, f"{base}.prev({given[:-3].strip()})"),), f"write `{base}.prev({given[:-3].strip()})`", p.line, -0.5)
        yield Proposal("slot", (s.replace(slot, less),), f"write `{less}`", p.line)
        yield Proposal("slot", (s.replace(slot, f"{base}.prev({back + 1})"),), f"write `{base}.prev({back + 1})`", p.line, 1)
    else:
        yield Proposal("slot-back", (s.replace(slot, f"{text}.prev()"),), f"write `{text}.prev()`", p.line, 0.5)


def bounds(s: Source) -> Iterator[Proposal]:
    """One round more or less: sums with a constant taken back, and the bound that other roles' loops have."""
    loops = [(p, p.node) for p in s.statements if isinstance(p.node, ast.For) and isinstance(p.node.iter, ast.Call) and called(p.node.iter) in ("range", "static_range")]
    usual = Counter(s.source(loop.iter.args[-1]) for _, loop in loops if loop.iter.args)  # type: ignore[attr-defined]  # calls, see above
    for p, loop in loops:
        assert isinstance(loop.iter, ast.Call)
        for i, bound in enumerate(loop.iter.args):
            text = s.source(bound)
            if isinstance(bound, ast.BinOp) and isinstance(bound.op, (ast.Add, ast.Sub)) and isinstance(bound.right, ast.Constant):
                plain = s.source(bound.left)
                yield Proposal("bound", (s.replace(bound, plain),), f"loop to `{plain}`" if i else f"loop from `{plain}`", p.line, -1 if plain in usual or not i else 0)
            elif i == len(loop.iter.args) - 1:
                for other, n in usual.items():
                    if other != text and n >= usual[text]:
                        yield Proposal("bound", (s.replace(bound, other),), f"loop to `{other}`", p.line, 0.5)
                yield Proposal("round", (s.replace(bound, f"{text} - 1"),), "loop once less", p.line, 1)
                yield Proposal("round", (s.replace(bound, f"{text} + 1"),), "loop once more", p.line, 1)


_OTHER = {ast.Lt: ("<=",), ast.LtE: ("<",), ast.Gt: (">=",), ast.GtE: (">",), ast.Eq: ("!=",), ast.NotEq: ("==",)}


def guards(s: Source) -> Iterator[Proposal]:
    """Conditions one step earlier or later, taken back to the plain comparison, or put around what looks back."""
    for p in s.statements:
        if isinstance(p.node, ast.If):
            if isinstance(p.node.test, ast.Constant):
                yield from _conditions(s, p, p.node.test)
            for c in ast.walk(p.node.test):
                if not isinstance(c, ast.Compare) or len(c.ops) != 1:
                    continue
                left, right = s.source(c.left), c.comparators[0]
                for sign in _OTHER.get(type(c.ops[0]), ()):
                    yield Proposal("guard", (s.replace(c, f"{left} {sign} {s.source(right)}"),), f"write `{left} {sign} {s.source(right)}`", p.line)
                if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Add) and isinstance(right.right, ast.Constant):
                    yield Proposal("guard", (s.replace(right, s.source(right.left)),), f"compare with `{s.source(right.left)}`", p.line, -0.5)
        elif p.name in ("arrive", "wait", "commit") and p.around and isinstance(p.around[-1], ast.For) and isinstance(p.around[-1].target, ast.Name):
            var = p.around[-1].target.id
            pad = " " * (p.node.col_offset + 4)
            if any(isinstance(n, ast.Call) and called(n) == "prev" for n in ast.walk(p.node)):
                yield Proposal("guarded", (s.replace(p.node, f"if {var} > 0:\n{pad}{s.source(p.node)}"),), f"put it under `if {var} > 0:`", p.line)


def _conditions(s: Source, p: Placed, test: ast.expr) -> Iterator[Proposal]:
    """Conditions that could stand where one is constant: on the loop around it, on the member, on what is left."""
    loops = [x for x in p.around if isinstance(x, ast.For) and isinstance(x.target, ast.Name) and isinstance(x.iter, ast.Call) and called(x.iter) != "tiles"]
    if loops:
        var = loops[-1].target.id  # type: ignore[union-attr]  # names, see above
        last = s.source(loops[-1].iter.args[-1]) if loops[-1].iter.args else "1"  # type: ignore[attr-defined]  # a call, by the line that lists them
        back = max([1, *(_back(n) for n in ast.walk(p.node) if isinstance(n, ast.Call) and called(n) == "prev")])
        for text in (f"{var} > {back - 1}", f"{var} >= {back}", f"{var} == 0", f"{var} + 1 < {last}"):
            yield Proposal("condition", (s.replace(test, text),), f"write `if {text}:`", p.line, 0.1)
    if s.program.roles[p.role].members > 1:
        for i in range(min(2, s.program.roles[p.role].members)):
            yield Proposal("condition", (s.replace(test, f"{p.role}.index == {i}"),), f"write `if {p.role}.index == {i}:`", p.line, 0.2)
    for name in {n.id for n in ast.walk(p.node) if isinstance(n, ast.Name)}:
        if any(isinstance(q.node, ast.Assign) and isinstance(q.node.targets[0], ast.Name) and q.node.targets[0].id == name for q in s.of_role(p.role)):
            yield Proposal("condition", (s.replace(test, f"{name} > 0"),), f"write `if {name} > 0:`", p.line, 0.4)
    for name in s.program.lets:
        yield Proposal("condition", (s.replace(test, f"{name} > 1"),), f"write `if {name} > 1:`", p.line, 0.6)
        yield Proposal("condition", (s.replace(test, f"{name} > 0"),), f"write `if {name} > 0:`", p.line, 0.6)


def _back(call: ast.Call) -> int:
    a = call.args[0] if call.args else None
    return a.value if isinstance(a, ast.Constant) and isinstance(a.value, int) else 1


def drains(s: Source) -> Iterator[Proposal]:
    """Waits for groups that leave fewer, or more, in flight."""
    for p in s.statements:
        if p.name in ("mma_wait", "store_wait", "cp_wait") and p.call is not None:
            pending = option(p.call, "pending", 0)
            text = s.source(pending) if pending is not None else ""
            if pending is None:
                continue
            if text != "0":
                less = str(int(text) - 1) if text.isdigit() else f"{text} - 1" if not text.endswith("+ 1") else text[:-3].strip()
                yield Proposal("drain", (s.replace(pending, less),), f"leave {less} in flight", p.line)
                if less != "0":
                    yield Proposal("drain", (s.replace(pending, "0"),), "leave none in flight", p.line, 0.5)
            yield Proposal("slack", (s.replace(pending, f"{int(text) + 1}" if text.isdigit() else f"{text} + 1"),), "leave one more in flight", p.line)
