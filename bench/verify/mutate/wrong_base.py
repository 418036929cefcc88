"""An index is counted from the wrong base."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called, option


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        for call in ast.walk(p.node):
            base = option(call, "base") if isinstance(call, ast.Call) else None
            if base is not None and called(call) in ("argmin", "argmax", "iota") and not isinstance(base, ast.Constant):  # type: ignore[arg-type]  # a call, by the line above
                s.mutant("wrong-base", f"{called(call)} from base 0", (base, "0"), at=p)  # type: ignore[arg-type]  # as above
