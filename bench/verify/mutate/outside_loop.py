"""What every round needs stands in front of the loop, or behind it: it is done in the first round only, or in the last one."""

import ast

from bench.verify.mutate.subject import Subject
from cake_verify.proposals.placed import called

_EACH = ("sync", "fence_proxy", "store_wait", "cp_wait", "mma_wait", "tmem_wait", "cp_commit", "commit", "arrive")


def make(s: Subject) -> None:
    for p in s.statements:
        loop = next((x for x in reversed(p.around) if isinstance(x, ast.For)), None)
        if not p.calls(*_EACH) or loop is None or p.node.lineno != p.node.end_lineno or not isinstance(loop.iter, ast.Call) or called(loop.iter) != "range":
            continue
        bounds = [s.source(x) for x in loop.iter.args]
        first, last = bounds[0] if len(bounds) > 1 else "0", f"{bounds[-1]} - 1"
        pad = "\n" + " " * (p.node.col_offset + 4)
        truth = s.meeting(p.node)
        for where, only in (("in front of", first), ("behind", last)):
            text = f"if {s.source(loop.target)} == {only}:{pad}{s.source(p.node)}"
            s.mutant("outside-loop", f"{s.source(p.node)} {where} the loop", (p.node, text), at=p, truth=truth)
