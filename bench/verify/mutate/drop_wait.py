"""A wait on an mbarrier is missing."""

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("wait") and s.source(p.call.args[0]) in s.program.barriers:  # type: ignore[union-attr]  # `calls` says there is one
            s.mutant("drop-wait", f"without {s.source(p.node)}", (p.node, "pass"), at=p)
