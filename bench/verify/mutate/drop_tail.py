"""A count is rounded down where it has to be rounded up: the last, ragged block is left out by everybody."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called


def make(s: Subject) -> None:
    inside = {id(n): p for p in s.statements if not isinstance(p.node, ast.If) for n in ast.walk(p.node.iter if isinstance(p.node, ast.For) else p.node)}
    assumed = {id(n) for d in s.function.body if isinstance(d, ast.Expr) for n in ast.walk(d)}  # `lm.assume` relates arguments: another thing
    for call in ast.walk(s.function):
        if isinstance(call, ast.Call) and called(call) == "cdiv" and len(call.args) == 2 and id(call) not in assumed:
            a, b = (s.source(x) for x in call.args)
            s.mutant("drop-tail", f"{s.source(call)} rounded down", (call, f"(({a}) // ({b}))"), at=inside.get(id(call)))
