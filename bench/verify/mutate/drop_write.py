"""Something is not written: a result, a staging tile, an operand."""

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("store", "tma_store", "tmem_store"):
            s.mutant("drop-write", f"without {s.source(p.node)}", (p.node, "pass"), at=p)
