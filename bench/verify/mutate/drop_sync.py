"""A meeting at a named barrier, or at the cluster's, is missing."""

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("sync", "cluster_sync"):
            s.mutant("drop-sync", f"without {s.source(p.node)}", (p.node, "pass"), at=p, truth=s.meeting(p.node))
