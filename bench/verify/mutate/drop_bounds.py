"""An access of global memory is neither masked nor clipped at the edge, or one element too late."""

import ast

from bench.verify.mutate.subject import Subject, without
from cake_verify.proposals.placed import called, option


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        for call in ast.walk(p.node):
            if isinstance(call, ast.Call) and called(call) in ("load", "store", "cp_async"):
                for name in ("clip", "mask"):
                    if option(call, name) is not None:
                        s.mutant("drop-bounds", f"{called(call)} without {name}", (call, without(s, call, name)), at=p)
                mask = option(call, "mask")
                for c in ast.walk(mask) if mask is not None else ():
                    if isinstance(c, ast.Compare) and isinstance(c.ops[0], ast.Lt):
                        s.mutant("drop-bounds", f"{s.source(c)} + 1", (c, f"{s.source(c)} + 1"), at=p)
