"""Upstream data is read before the wait for the upstream kernel.

Only roles that read such data themselves are mutated, and only where another role still waits: a kernel that waits nowhere is not a
dependent one, and a role may rely on data that a role which waited hands over.
"""

import ast

from bench.verify.mutate.subject import Subject, called


def make(s: Subject) -> None:
    waits = [p for p in s.statements if p.calls("pdl_wait")]
    for p in waits:
        if len(waits) < 2 or not _reads(s, p.role):
            continue
        s.mutant("pdl", f"no lm.pdl_wait() in {p.role}", (p.node, "pass"), at=p, truth="contract")
        if p.index + 1 < len(p.siblings):
            after = p.siblings[p.index + 1]
            if after.lineno == after.end_lineno:
                s.mutant("pdl", f"lm.pdl_wait() after {s.source(after)}", (p.node, s.source(after)), (after, s.source(p.node)), at=p, truth="contract")


def _reads(s: Subject, role: str) -> bool:
    """Whether a role reads a tensor that the upstream kernel may have written."""
    for p in s.statements:
        for call in ast.walk(p.node) if p.role == role else ():
            if isinstance(call, ast.Call) and called(call) in ("tma_load", "load", "cp_async") and call.args:
                tensor = s.program.tensors.get(s.source(call.args[0]))
                if tensor is not None and not tensor.const:
                    return True
    return False
