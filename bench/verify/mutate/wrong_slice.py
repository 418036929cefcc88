"""A member or a step works on another part of a tile than its own."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        for call in ast.walk(p.node):
            if isinstance(call, ast.Call) and called(call) in ("rows", "cols") and call.args and not isinstance(call.args[0], ast.Constant):
                s.mutant("wrong-slice", f"{s.source(call)} from 0", (call.args[0], "0"), at=p)
        for n in ast.walk(p.node):
            if isinstance(n, ast.Attribute) and n.attr == "index" and isinstance(n.value, ast.Name) and n.value.id in s.program.roles:
                s.mutant("wrong-slice", f"the other member's part in {s.source(p.node)}", (n, f"(1 - {s.source(n)})"), at=p)
                break
