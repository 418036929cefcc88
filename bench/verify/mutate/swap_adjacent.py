"""Two neighbouring statements stand in the wrong order."""

import ast

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if p.index + 1 >= len(p.among):
            continue
        a, b = p.node, p.among[p.index + 1]
        simple = all(isinstance(n, ast.Expr | ast.Assign) and n.lineno == n.end_lineno for n in (a, b))
        if simple and isinstance(a, ast.Expr | ast.Assign) and any(isinstance(n, ast.Expr) for n in (a, b)):
            truth = min((s.meeting(n) for n in (a, b)), key=("contract", "lanes", "simulation").index)
            s.mutant("swap-adjacent", f"{s.source(b)} before {s.source(a)}", (a, s.source(b)), (b, s.source(a)), at=p, truth=truth)
