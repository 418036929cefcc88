"""A ragged tail is stored one row too long, one too short, or whole."""

from bench.verify.mutate.subject import Subject, without
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("tma_store"):
            assert p.call is not None
            rows = option(p.call, "rows")
            if rows is not None:
                s.mutant("rows-tail", "the whole box", (p.node, without(s, p.call, "rows")), at=p)
                for delta in ("+ 1", "- 1"):
                    s.mutant("rows-tail", f"{s.source(rows)} {delta} rows", (rows, f"{s.source(rows)} {delta}"), at=p)
