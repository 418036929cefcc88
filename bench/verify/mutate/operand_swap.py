"""A product has its operands exchanged, or one of them is not transposed."""

import ast

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if not p.calls("mma"):
            continue
        assert p.call is not None
        _, a, b = p.call.args[:3]
        s.mutant("operand-swap", f"a and b exchanged in {s.source(p.node)}", (a, s.source(b)), (b, s.source(a)), at=p)
        for x in (a, b):
            if isinstance(x, ast.Attribute) and x.attr == "T":
                s.mutant("operand-swap", f"{s.source(x.value)} for {s.source(x)}", (x, s.source(x.value)), at=p)
