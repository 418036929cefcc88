"""A flag between blocks is not raised or not waited for, is too low, is another word's, or is raised before the work is done."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called


def make(s: Subject) -> None:
    for p in s.statements:
        call = p.call if isinstance(p.node, ast.Expr) else None
        if call is None or called(call) not in ("signal", "spin"):
            continue
        text = s.source(call)
        s.mutant("wrong-flag", f"without {text}", (p.node, "pass"), at=p)
        word, value = call.args[1], call.args[2]
        s.mutant("wrong-flag", f"{text}: one less", (value, f"{s.source(value)} - 1"), at=p)
        s.mutant("wrong-flag", f"{text}: one more", (value, f"{s.source(value)} + 1"), at=p)
        s.mutant("wrong-flag", f"{text}: the next word", (word, f"{s.source(word)} + 1"), at=p)
        s.mutant("wrong-flag", f"{text}: the first word", (word, "0"), at=p)
        before = p.among[p.index - 1] if p.index else None
        if called(call) == "signal" and isinstance(before, ast.Expr):
            s.mutant("wrong-flag", f"{text} before {s.source(before)}", (before, text), (p.node, s.source(before)), at=p)
