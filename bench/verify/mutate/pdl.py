"""Upstream data is touched before the wait for the upstream kernel."""

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("pdl_wait"):
            s.mutant("pdl", f"no lm.pdl_wait() in {p.role}", (p.node, "pass"), at=p, truth="contract")
            if p.index + 1 < len(p.siblings):
                after = p.siblings[p.index + 1]
                if after.lineno == after.end_lineno:
                    s.mutant("pdl", f"lm.pdl_wait() after {s.source(after)}", (p.node, s.source(after)), (after, s.source(p.node)), at=p, truth="contract")
