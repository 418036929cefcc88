"""The scratch of a reduction over warps is rewritten while slow warps still read it."""

import ast

from bench.verify.mutate.subject import Subject, keyword


def make(s: Subject) -> None:
    for p in s.statements:
        if p.call is None:
            continue
        scratch = keyword(p.call, "scratch")
        if isinstance(scratch, ast.Subscript):
            s.mutant("reduction-scratch", f"always slot 0 of {s.source(scratch)}", (scratch.slice, "0"), at=p)
