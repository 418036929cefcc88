"""An operation uses the slot before or after the one it means."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import Placed, called


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        for node in ast.walk(p.node):
            for slot in _slots(s, node):
                _shift(s, p, slot)


def _slots(s: Subject, node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        return [k.value for k in node.keywords if k.arg == "stage" and not isinstance(k.value, ast.Constant)]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and not isinstance(node.slice, ast.Constant):
        return [node.slice] if node.value.id in s.program.views or node.value.id not in s.declarations else []
    return []


def _shift(s: Subject, p: Placed, slot: ast.expr) -> None:
    text = s.source(slot)
    if isinstance(slot, ast.Call) and called(slot) == "prev":
        assert isinstance(slot.func, ast.Attribute)
        base = s.source(slot.func.value)
        back = s.source(slot.args[0]) if slot.args else "1"
        s.mutant("wrong-stage", f"{text} one later in {s.source(p.node)}", (slot, base if back == "1" else f"{base}.prev({back} - 1)"), at=p)
        s.mutant("wrong-stage", f"{text} one earlier in {s.source(p.node)}", (slot, f"{base}.prev({back} + 1)"), at=p)
    else:
        s.mutant("wrong-stage", f"{text} one earlier in {s.source(p.node)}", (slot, f"{text}.prev()"), at=p)
