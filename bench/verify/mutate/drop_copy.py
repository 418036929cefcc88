"""A copy into shared or tensor memory is missing, or brings only half of its tile."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import option


def make(s: Subject) -> None:
    for p in s.statements:
        if p.calls("tmem_copy"):
            s.mutant("drop-copy", f"without {s.source(p.node)}", (p.node, "pass"), at=p)
        if not p.calls("tma_load", "cp_async"):
            continue
        assert p.call is not None and isinstance(p.call.func, ast.Attribute)
        s.mutant("drop-copy", f"without {s.source(p.node)}", (p.node, "pass"), at=p)
        base = p.call.func.value
        view = s.program.views.get(s.source(base))
        stage = option(p.call, "stage")
        if view is not None and len(view.shape) == 2 and view.shape[0] % 16 == 0 and stage is not None:
            slot = f"{view.name}[{s.source(stage)}]" if view.stages > 1 else view.name
            s.mutant("drop-copy", f"half the rows in {s.source(p.node)}", (base, f"{slot}.rows(0, {view.shape[0] // 2})"), at=p)
