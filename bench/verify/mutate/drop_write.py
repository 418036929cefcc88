"""Something is not written: a result, a staging tile, an operand.

Where a whole output goes that nothing else mentions (class `drop-output`), the schedule is another one, which has not got that output: the
outputs that come with the question tell, as a task's do.
"""

import ast

from bench.verify.mutate.subject import Subject


def make(s: Subject) -> None:
    named = [n.id for p in s.statements if not isinstance(p.node, ast.For | ast.If) for n in ast.walk(p.node) if isinstance(n, ast.Name)]
    for p in s.statements:
        if p.calls("store", "tma_store", "tmem_store"):
            assert p.call is not None
            tensor = s.source(p.call.args[0]) if p.call.args else ""
            others = [t for t in s.program.tensors.values() if t.name != tensor and not t.const and t.name in named]
            whole = tensor in s.program.tensors and named.count(tensor) == 1 and any(_stored(s, t.name) for t in others)
            s.mutant("drop-output" if whole else "drop-write", f"without {s.source(p.node)}", (p.node, "pass"), at=p)


def _stored(s: Subject, tensor: str) -> bool:
    """Whether some operation stores to a tensor."""
    return any(p.calls("store", "tma_store", "atomic") and p.call is not None and p.call.args and s.source(p.call.args[0]) == tensor for p in s.statements)
