"""An operation uses another view of the same shape and dtype."""

import ast

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    views = s.program.views
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        for n in ast.walk(p.node):
            if isinstance(n, ast.Name) and n.id in views and isinstance(n.ctx, ast.Load):
                mine = views[n.id]
                for v in views.values():
                    if v.name != n.id and (v.shape, v.dtype, v.stages) == (mine.shape, mine.dtype, mine.stages):
                        s.mutant("wrong-view", f"`{v.name}` for `{n.id}` in {s.source(p.node)}", (n, v.name), at=p, truth=s.of_one_warp(n.id, v.name))
