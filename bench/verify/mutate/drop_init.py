"""A running value is not initialised."""

import ast

from bench.verify.mutate.subject import Subject, without
from cake_verify.proposals.placed import called, option


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        for call in ast.walk(p.node):
            if isinstance(call, ast.Call) and called(call) == "frag" and option(call, "init") is not None:
                s.mutant("drop-init", f"{s.source(call)} without init", (call, without(s, call, "init")), at=p)
