"""The scratch of a reduction over warps is rewritten while slow warps still read it."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for p in s.statements:
        if p.call is None:
            continue
        scratch = option(p.call, "scratch")
        if isinstance(scratch, ast.Subscript):
            s.mutant("reduction-scratch", f"always slot 0 of {s.source(scratch)}", (scratch.slice, "0"), at=p)
