"""Q032: both arms of a branch are taken for some numbers."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.structure import TURNED, listed
from cake_ir.fault import Fault, Fix
from cake_ir.program import Expr, If, Program
from cake_verify.analyses import edits
from cake_verify.analyses.trips import linear, resolver_of, spoken
from cake_verify.rule import Page
from cake_verify.rules.examples import edit

_PARTS = '''
@cake.schedule(target="sm_90a")
def parts(lm, X: LM.gmem1d[LM.f32, "N"], HEAD: LM.gmem1d[LM.f32, "G"], REST: LM.gmem1d[LM.f32, "G"], N: LM.i32, G: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(N > 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            end = lm.min(N, (t.g + 1) * 64)
            if end < (t.g + 1) * 64:
                lm.store(REST, lm.ld(X, end - 1), coords=(t.g,))
            else:
                lm.store(HEAD, lm.ld(X, end - 1), coords=(t.g,))
'''

PAGE = Page(
    code="Q032",
    title="an arm that no number reaches",
    statement="What a branch compares is not a minimum that is never above the other side, or a maximum that is never below it, with an arm that only then would run.",
    why="`end <= last` always holds where `end = lm.min(.., last)`: the arm for the last part, which was to write the result, is never taken.",
    failing=edit(_PARTS, ("if end < (t.g", "if end <= (t.g")),
    passing=_PARTS,
    limits="Comparisons of `lm.min` or `lm.max` with one of what they choose from, and whole numbers beside it; arms that hold nothing are left alone.",
)


def check(program: Program) -> Iterator[Fault]:
    for block, body in listed(program):
        for s in body:
            if isinstance(s, If) and s.cond.op in _COMPARED and (holds := _always(resolver_of(program, block.role)(s.cond))) is not None and (s.orelse if holds else s.then):
                yield _fault(block.role, s, holds)


_COMPARED = frozenset({"lt", "le", "gt", "ge"})
_OTHER = {"le": "<", "ge": ">"}


def _always(c: Expr) -> bool | None:
    """What a comparison comes to, whatever the numbers are: one side is at most (at least) something that the other is above (below) by a constant."""
    a, b, op = *c.args, c.op
    if b.op in ("min", "max"):
        a, b, op = b, a, TURNED[op]
    if a.op not in ("min", "max"):
        return None
    found = [constant for x in _chosen(a, a.op) for constant, terms in (linear(Expr("sub", (x, b))),) if not terms]
    if not found:
        return None
    if a.op == "min":  # a - b is at most this
        most = min(found)
        return True if op in ("lt", "le") and most + (op == "lt") <= 0 else False if op in ("gt", "ge") and most - (op == "gt") < 0 else None
    least = max(found)
    return True if op in ("gt", "ge") and least - (op == "gt") >= 0 else False if op in ("lt", "le") and least + (op == "lt") > 0 else None


def _chosen(e: Expr, op: str) -> list[Expr]:
    """What a minimum or a maximum chooses from."""
    return [x for a in e.args for x in (_chosen(a, op) if a.op == op else [a])]


def _fault(role: str, s: If, holds: bool) -> Fault:
    c = s.cond
    fixes: tuple[Fix, ...] = ()
    if holds and c.op in _OTHER and c.span.line and c.span.line == c.span.end_line:
        fixes = (edits.replace(c.span, f"{spoken(c.args[0])} {_OTHER[c.op]} {spoken(c.args[1])}"),)
    return Fault("Q032", f"`{spoken(c)}` {'always' if holds else 'never'} holds: one side is {'a limit that the other keeps' if holds else 'what the other never goes beyond'}", c.span if c.span.line else s.head, (),
                 "compare so that either arm is taken for some numbers, or leave out the one that never runs", fixes, {"role": role})  # fmt: skip
