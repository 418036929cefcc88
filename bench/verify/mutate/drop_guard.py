"""What stands under a condition is done always."""

import ast

from bench.verify.mutate.subject import Subject, chooses_values, communicates


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.If):
            s.mutant("drop-guard" if communicates(p.node) and not chooses_values(p.node) else "wrong-guard", f"without `if {s.source(p.node.test)}`", (p.node.test, "True"), at=p)
