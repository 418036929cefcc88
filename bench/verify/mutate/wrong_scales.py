"""A product takes the block scales of the other operand, of another slice of K, or what another copy has brought."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called, option


def make(s: Subject) -> None:
    copies = [p for p in s.statements if p.calls("tmem_copy")]
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        if p.calls("mma") and p.call is not None:
            one, other = option(p.call, "scale_a"), option(p.call, "scale_b")
            if one is not None and other is not None:
                s.mutant("wrong-scales", f"the operands' scales exchanged in {s.source(p.call.func)}", (one, s.source(other)), (other, s.source(one)), at=p)
                s.mutant("wrong-scales", "the scales of a for both", (other, s.source(one)), at=p)
        for n in ast.walk(p.node):
            if isinstance(n, ast.Call) and called(n) == "scales":
                first = option(n, "first")
                if first is not None and not isinstance(first, ast.Constant):
                    for text in ("0", f"3 - {s.source(first)}"):
                        s.mutant("wrong-scales", f"scales from {text} on in {s.source(n.args[0])}", (first, text), at=p)
        if p in copies and p.call is not None:
            for x in copies:
                if x is not p and x.call is not None:
                    s.mutant("wrong-scales", f"{s.source(x.call.args[1])} copied for {s.source(p.call.args[1])}", (p.call.args[1], s.source(x.call.args[1])), at=p)
