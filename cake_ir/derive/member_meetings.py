"""Releases in front of which a member's warps have to meet although no thread of them read the slot: nothing else holds them together.

One thread arrives for its member (`arrive="member"`). The others have come as far where they took part in a product since the wait for the
slot and have waited for it. On a path without one (a loop without a round, a branch not taken) they may still stand at that wait:
the slot is filled and released again, and they wait for a phase that has come and gone.
"""

from __future__ import annotations

import math

from cake_ir.derive.assumed import assumed
from cake_ir.derive.issue import issue_roles
from cake_ir.derive.structure import LARGE, definitions
from cake_ir.fact import fact
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Arrive, ClusterSync, Drain, Issue, Sync, Wait
from cake_ir.program import Expr, For, If, Op, Program, Stmt, op_of

WAITED, MULTIPLIED = 0, 1
State = frozenset[tuple[str, int]]
"""Rings whose last wait the warps of the member may not all have passed, and whether all have issued a product since."""


@fact
def idle_releases(program: Program) -> frozenset[int]:
    """Ids of `arrive="member"` operations that some path reaches from the wait for their slot without a product in between."""
    found: set[int] = set()
    for block in program.body:
        if program.roles[block.role].member_warps > 1 and block.role not in issue_roles(program):
            _Scan(program, block.role, found).body(block.body, frozenset())
    return frozenset(found)


class _Scan:
    """Every path through one role's block."""

    def __init__(self, program: Program, role: str, found: set[int]) -> None:
        self.program, self.role, self.found = program, role, found

    def body(self, body: tuple[Stmt, ...], state: State) -> State:
        for s in body:
            if isinstance(s, For):
                once = self.body(s.body, state)
                again = self.body(s.body, state | once)
                state = again | once if runs(self.program, s) else state | once | again
            elif isinstance(s, If):
                state = self.body(s.then, state) | self.body(s.orelse, state)
            elif (op := op_of(s)) is not None:
                state = self.operation(op, state)
        return state

    def operation(self, op: Op, state: State) -> State:
        name = str(op.attrs.get("barrier"))
        barrier = self.program.barriers.get(name)
        for e in effects_of(op, self.program):
            if isinstance(e, Wait) and barrier is not None:
                state |= {(barrier.pipeline, WAITED)}
            elif isinstance(e, Issue) and e.engine == "wgmma":
                state = frozenset((ring, MULTIPLIED) for ring, _ in state)
            elif isinstance(e, Drain) and e.engine == "wgmma":
                state = frozenset(x for x in state if x[1] != MULTIPLIED)
            elif isinstance(e, ClusterSync) or (isinstance(e, Sync) and name in self.program.named and self.role in self.program.named[name].roles):
                state = frozenset()
            elif isinstance(e, Arrive) and barrier is not None and barrier.arrive == "member" and not _older(op) and any(r == barrier.pipeline for r, _ in state):
                self.found.add(op.id)
                state = frozenset()
        return state


def _older(op: Op) -> bool:
    """Whether an arrival releases a slot in front of the one that was waited for last: the product that read it was waited for."""
    stage = op.operands.get("stage")
    return isinstance(stage, Expr) and stage.op == "prev"


def runs(program: Program, loop: For) -> bool:
    """Whether a loop certainly runs at least once: its bounds are numbers, or `lm.assume` bounds what decides them."""
    if loop.lo is None or loop.hi is None:
        return False
    named: dict[str, int | None] = {}
    for d in (*definitions(program.lets, loop.lo), *definitions(program.lets, loop.hi)):
        named[d.name] = _least(program, d.value, named)
    first, end = _least(program, loop.lo, named), _least(program, loop.hi, named)
    return loop.lo.op == "const" and first is not None and end is not None and end > first


def _least(program: Program, e: Expr, named: dict[str, int | None]) -> int | None:
    """The least value of a uniform integer as numbers and assumptions bound it; None where nothing does. `named` has those of the names in it."""
    if e.op == "const":
        v = e.attrs["value"]
        return v if isinstance(v, int) else None
    if e.op == "param":
        lo = assumed(program.assumes, str(e.attrs["name"]))[0]
        return int(lo) if math.isfinite(lo) else None
    if e.op == "var" and (name := str(e.attrs["name"])) in named:
        return named[name]
    args = [_least(program, a, named) for a in e.args]
    known = [a for a in args if a is not None]
    if e.op == "max" and known:
        return max(known)
    if len(known) < len(args) or not known:
        return None
    if e.op == "cdiv" and e.args[1].op == "const" and known[1] > 0:
        return -(-known[0] // known[1])
    if e.op in ("add", "min"):
        return sum(known) if e.op == "add" else min(known)
    return min(known[0] * known[1], LARGE) if e.op == "mul" and min(known) >= 0 else None
