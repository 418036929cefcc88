"""An operation stands there twice: one arrival, copy or wait too many; or a product that is added twice."""

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("arrive", "commit", "tma_load", "wait", "mma", "cp_commit", "sync"):
            pad = "\n" + " " * p.node.col_offset
            s.mutant("duplicate-product" if p.calls("mma") else "duplicate", f"{s.source(p.node)} twice", (p.node, f"{s.source(p.node)}{pad}{s.source(p.node)}"), at=p)
