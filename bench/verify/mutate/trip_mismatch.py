"""One role's loop runs once more or once less than its partners'."""

import ast

from bench.verify.mutate.subject import Subject, called


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.For) and isinstance(p.node.iter, ast.Call) and called(p.node.iter) in ("range", "static_range"):
            bound = p.node.iter.args[-1]
            for delta in ("- 1", "+ 1"):
                s.mutant("trip-mismatch", f"{s.source(bound)} {delta} rounds", (bound, f"{s.source(bound)} {delta}"), at=p)
            if len(p.node.iter.args) == 2:
                first = p.node.iter.args[0]
                s.mutant("trip-mismatch", f"from {s.source(first)} - 1 on", (first, f"{s.source(first)} - 1"), at=p)
