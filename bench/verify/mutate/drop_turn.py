"""A member does not wait for its turn, or does not pass it on."""

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("wait", "arrive") and s.source(p.call.args[0]) in s.program.turns:  # type: ignore[union-attr]  # `calls` says there is one
            s.mutant("drop-turn", f"without {s.source(p.node)}", (p.node, "pass"), at=p)
