"""A running value is not brought up to date: a sum is not rescaled, a maximum is not kept, a counter stands still."""

import ast

from bench.verify.mutate.subject import Subject, acts
from cake_verify.proposals.placed import called


def make(s: Subject) -> None:
    for p in s.statements:
        node = p.node
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        else:
            continue
        if acts(node) or any(isinstance(n, ast.Call) and called(n) in ("step", "at") for n in ast.walk(node)):
            continue  # another class's
        loops = [x for x in p.around if isinstance(x, ast.For)]
        if not loops or not _carried(s, name, loops[-1], p.node):
            continue
        s.mutant("drop-update", f"without {s.source(node)}", (node, "pass"), at=p)


def _carried(s: Subject, name: str, loop: ast.For, update: ast.stmt) -> bool:
    """Whether a name has a value in front of the loop and is read in it, so that it lives on without the update."""
    before = any(p.node.lineno < loop.lineno and isinstance(p.node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in p.node.targets) for p in s.statements)
    return before and any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(loop))
