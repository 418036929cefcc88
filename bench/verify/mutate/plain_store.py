"""What several blocks add to memory is stored over what the others have added."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called

_ONLY_THERE = frozenset({"op", "order", "scope"})


def make(s: Subject) -> None:
    for p in s.statements:
        if not p.calls("atomic", "tma_reduce"):
            continue
        call = p.call
        assert call is not None and isinstance(call.func, ast.Attribute)
        given = [*(s.source(x) for x in call.args), *(f"{k.arg}={s.source(k.value)}" for k in call.keywords if k.arg not in _ONLY_THERE)]
        if called(call) == "atomic" and s.source(call.args[0]) not in s.program.tensors:
            continue
        store = "tma_store" if called(call) == "tma_reduce" else "store"
        s.mutant("plain-store", f"{s.source(call.func)} only stores", (call, f"{s.source(call.func.value)}.{store}({', '.join(given)})"), at=p)
