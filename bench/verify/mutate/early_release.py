"""A slot is released one or two statements too early."""

import ast

from bench.verify.mutate.subject import Placed, Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if not p.calls("arrive", "commit") or s.source(p.call.args[0]) not in s.program.barriers:  # type: ignore[union-attr]  # `calls` says there is one
            continue
        _move(s, p, p)
        outer = p.around[-1] if p.around and isinstance(p.around[-1], ast.If) and len(p.among) == 1 else None
        if outer is not None:  # a release under its guard moves with it
            whole = next(q for q in s.statements if q.node is outer)
            _move(s, p, whole)


def _move(s: Subject, p: Placed, moved: Placed) -> None:
    for back in (1, 2):
        j = moved.index - back
        if j < 0:
            return
        between = moved.among[j : moved.index]
        if any(not isinstance(n, ast.Expr | ast.Assign) or n.lineno != n.end_lineno for n in between):
            return
        first = between[0]
        pad = "\n" + " " * first.col_offset
        pieces = [(first, s.source(moved.node) + pad + s.source(first)), (moved.node, "pass")]
        if "\n" in s.source(moved.node):  # the order is what counts: put the guard on lines of its own
            pieces = [(first, f"{s.source(moved.node)}{pad}{s.source(first)}"), (moved.node, "pass")]
        s.mutant("early-release", f"{s.source(p.node)} {back} statement{'s' if back > 1 else ''} earlier", *pieces, at=moved)
