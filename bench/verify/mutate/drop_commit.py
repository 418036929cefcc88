"""A commit is missing: of tensor-core work to a barrier, or of cp.async copies to a group."""

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("commit", "cp_commit"):
            s.mutant("drop-commit", f"without {s.source(p.node)}", (p.node, "pass"), at=p)
