"""Columns of tensor memory overlap, or an accumulator is read where another one lies."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called, option


def make(s: Subject) -> None:
    for name, call in s.declared("tmem"):
        cols = option(call, "cols")
        t = s.program.tmems[name]
        if cols is not None:
            for at in (t.col - 32, t.col + 512 - t.width + 32):
                if at >= 0 and at != t.col:
                    s.mutant("tensor-memory", f"`{name}` at column {at}", (cols, str(at)), roles=s.users(name))
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        for n in ast.walk(p.node):
            if isinstance(n, ast.Call) and called(n) == "cols" and isinstance(n.func, ast.Attribute) and s.source(n.func.value) in s.program.tmems:
                s.mutant("tensor-memory", f"{s.source(n)} from column 0", (n.args[0], "0"), at=p)
