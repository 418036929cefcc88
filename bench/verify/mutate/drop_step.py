"""A ring is not advanced, or once too often."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.Assign) and p.call is not None and called(p.call) == "step":
            ring = s.source(p.call.args[0])
            s.mutant("drop-step", f"{s.source(p.node)} does not advance", (p.call, f"lm.at({ring})"), at=p)
            pad = "\n" + " " * p.node.col_offset
            s.mutant("drop-step", f"{s.source(p.node)} advances twice", (p.node, f"lm.step({ring}){pad}{s.source(p.node)}"), at=p)
