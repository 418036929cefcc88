"""Elements that are not there, zeros or filler, take part in a maximum, a sum or a choice."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        for call in ast.walk(p.node):
            if isinstance(call, ast.Call) and called(call) == "where":
                mask, kept, _ = call.args
                s.mutant("drop-fill-mask", f"{s.source(kept)} everywhere", (call, s.source(kept)), at=p)
                for c in ast.walk(mask):
                    if isinstance(c, ast.Compare) and isinstance(c.ops[0], ast.Lt | ast.LtE):
                        s.mutant("drop-fill-mask", f"{s.source(c)} + 1", (c, f"{s.source(c)} + 1"), at=p)
