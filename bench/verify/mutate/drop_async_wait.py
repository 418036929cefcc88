"""A wait for asynchronous groups is missing."""

from bench.verify.mutate.subject import Subject

WAITS = ("mma_wait", "cp_wait", "store_wait", "tmem_wait")


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls(*WAITS):
            s.mutant("drop-async-wait", f"without {s.source(p.node)}", (p.node, "pass"), at=p)
