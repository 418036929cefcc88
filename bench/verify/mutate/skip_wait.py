"""A role waits on every other round of its loop only: what it passes by may come too early, or be one phase behind."""

import ast

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if not p.calls("wait") or s.source(p.call.args[0]) not in s.program.barriers:  # type: ignore[union-attr]  # `calls` says there is one
            continue
        loop = next((n for n in reversed(p.around) if isinstance(n, ast.For) and isinstance(n.iter, ast.Call) and s.source(n.iter.func).endswith(".range")), None)
        if loop is None or not isinstance(loop.target, ast.Name):
            continue
        for rest in (0, 1):
            guarded = f"if {loop.target.id} % 2 == {rest}: {s.source(p.node)}"
            s.mutant("skip-wait", f"{s.source(p.node)} in every other round, from {rest} on", (p.node, guarded), at=p)
