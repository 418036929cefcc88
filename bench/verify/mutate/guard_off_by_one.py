"""A uniform condition holds one step too early or too late."""

import ast

from bench.verify.mutate.subject import Subject, chooses_values, communicates

_OTHER = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}


def make(s: Subject) -> None:
    for p in s.statements:
        if not isinstance(p.node, ast.If):
            continue
        cls = "guard-off-by-one" if communicates(p.node) and not chooses_values(p.node) else "wrong-guard"
        for c in ast.walk(p.node.test):
            if isinstance(c, ast.Compare) and len(c.ops) == 1:
                left, right = s.source(c.left), s.source(c.comparators[0])
                s.mutant(cls, f"{left} {_OTHER[type(c.ops[0])]} {right}", (c, f"{left} {_OTHER[type(c.ops[0])]} {right}"), at=p)
                if not isinstance(c.ops[0], ast.Eq | ast.NotEq):
                    s.mutant(cls, f"{s.source(c)} + 1", (c, f"{s.source(c)} + 1"), at=p)
