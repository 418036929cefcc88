"""A running maximum, minimum or sum starts from what is not neutral for it."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called, option

_START = {"-lm.inf": ("0.0", "lm.inf"), "lm.inf": ("0.0", "-lm.inf"), "0.0": ("1.0",), "0": ("1",)}


def make(s: Subject) -> None:
    for p in s.statements:
        if isinstance(p.node, ast.For | ast.If):
            continue
        for call in ast.walk(p.node):
            start = option(call, "init", 1 if called(call) in ("rowvec", "colvec") else None) if isinstance(call, ast.Call) and called(call) in ("frag", "rowvec", "colvec") else None
            for other in _START.get(s.source(start), ()) if start is not None else ():
                s.mutant("wrong-start", f"{s.source(call)} from {other}", (start, other), at=p)
