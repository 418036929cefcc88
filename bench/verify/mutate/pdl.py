"""Upstream data is read before the wait for the upstream kernel.

Only roles that read such data themselves are mutated, and only where another role still waits: a kernel that waits nowhere is not a
dependent one, and a role may rely on data that a role which waited hands over. Data is upstream's too where a parameter is no longer said
to be constant, and where a condition lets the wait come one iteration late.
"""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called


def make(s: Subject) -> None:
    waits = [p for p in s.statements if p.calls("pdl_wait")]
    for p in waits:
        if len(waits) < 2 or not _reads(s, p.role):
            continue
        s.mutant("pdl", f"no lm.pdl_wait() in {p.role}", (p.node, "pass"), at=p)
        if p.index + 1 < len(p.among):
            after = p.among[p.index + 1]
            if after.lineno == after.end_lineno:
                s.mutant("pdl", f"lm.pdl_wait() after {s.source(after)}", (p.node, s.source(after)), (after, s.source(p.node)), at=p)
        for loop in (x for x in p.around if isinstance(x, ast.If)):
            late = _one_later(loop.test)
            if late is not None:
                s.mutant("pdl", f"lm.pdl_wait() under {late[1]} instead", late, at=p)
    if not waits:
        return
    for a in s.function.args.args:
        tensor = s.program.tensors.get(a.arg)
        if tensor is not None and tensor.const and isinstance(a.annotation, ast.Attribute) and a.annotation.attr == "const":
            s.mutant("pdl", f"`{a.arg}` is not constant", (a.annotation, s.source(a.annotation.value)), roles=_users(s, a.arg))


def _one_later(test: ast.expr) -> tuple[ast.expr, str] | None:
    """`k == 0` as `k == 1`."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and isinstance(c := test.comparators[0], ast.Constant) and c.value == 0:
        return test, f"{ast.unparse(test.left)} == 1"
    return None


def _users(s: Subject, tensor: str) -> frozenset[str]:
    """Roles that mention a tensor in a call."""
    return frozenset(p.role for p in s.statements for n in ast.walk(p.node) if isinstance(n, ast.Name) and n.id == tensor)


def _reads(s: Subject, role: str) -> bool:
    """Whether a role reads a tensor that the upstream kernel may have written."""
    for p in s.statements:
        for call in ast.walk(p.node) if p.role == role else ():
            if isinstance(call, ast.Call) and called(call) in ("tma_load", "load", "cp_async") and call.args:
                tensor = s.program.tensors.get(s.source(call.args[0]))
                if tensor is not None and not tensor.const:
                    return True
    return False
