"""A barrier that several roles or places come to is gone everywhere: no count is wrong any more, only the order is missing."""

from bench.verify.mutate.subject import Placed, Subject


def make(s: Subject) -> None:
    by: dict[str, list[Placed]] = {}
    for p in s.statements:
        if p.calls("sync", "cluster_sync"):
            by.setdefault(s.source(p.node), []).append(p)
    for text, placed in by.items():
        if len(placed) < 2:
            continue
        near = frozenset[int]().union(*(s.around(p) for p in placed))
        truth = "contract" if s.among_lanes(placed[0].node) else "simulation"
        s.mutant("drop-all-syncs", f"without any {text}", *((p.node, "pass") for p in placed), at=placed[0], near=near, roles=frozenset(p.role for p in placed), truth=truth)
