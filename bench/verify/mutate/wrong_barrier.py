"""An operation names another barrier of the same ring."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    barriers = s.program.barriers
    for p in s.statements:
        if not isinstance(p.node, ast.Expr) or p.call is None:
            continue
        place = option(p.call, "barrier") or (p.call.args[0] if p.calls("wait", "arrive", "commit") and p.call.args else None)
        name = s.source(place) if place is not None else ""
        if place is None or name not in barriers:
            continue
        for other in barriers.values():
            if other.name != name and other.pipeline == barriers[name].pipeline:
                s.mutant("wrong-barrier", f"`{other.name}` for `{name}` in {s.source(p.node)}", (place, other.name), at=p)
