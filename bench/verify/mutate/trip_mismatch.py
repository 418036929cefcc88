"""One role's loop runs once more or once less than its partners'; of a loop that only computes, once more or less than it should."""

import ast

from bench.verify.mutate.subject import Subject, communicates
from cake_verify.proposals.placed import called


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.For) and isinstance(p.node.iter, ast.Call) and called(p.node.iter) in ("range", "static_range"):
            cls = "trip-mismatch" if communicates(p.node) else "wrong-trips"
            bound = p.node.iter.args[-1]
            for delta in ("- 1", "+ 1"):
                s.mutant(cls, f"{s.source(bound)} {delta} rounds", (bound, f"{s.source(bound)} {delta}"), at=p)
            if len(p.node.iter.args) == 2:
                first = p.node.iter.args[0]
                s.mutant(cls, f"from {s.source(first)} - 1 on", (first, f"{s.source(first)} - 1"), at=p)
