"""A meeting at a named barrier is missing."""

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("sync"):
            s.mutant("drop-sync", f"without {s.source(p.node)}", (p.node, "pass"), at=p)
