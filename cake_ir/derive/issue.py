"""Which roles only issue: one elected thread runs the whole body, so its lanes have nothing to synchronise."""

from __future__ import annotations

from cake_ir.derive.structure import sites
from cake_ir.fact import fact
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Arrive, Commit, Drain, FenceProxy, Flag, GridDependency, Issue, Touch, Turn, Wait
from cake_ir.program import Expr, Op, Program
from cake_ir.types import FragT


def issues_alone(op: Op, program: Program) -> bool:
    """Whether one thread executes the operation, and no other has to come."""
    for effect in effects_of(op, program):
        if isinstance(effect, Issue):
            if effect.lanes == "all":
                return False
        elif isinstance(effect, Arrive):
            if program.barriers[str(op.attrs["barrier"])].arrive not in ("tx", "member"):
                return False
        elif isinstance(effect, Touch):
            if effect.lanes != "one" and (effect.space != "gmem" or op.name != "ld"):
                return False
        elif isinstance(effect, Turn) or not isinstance(effect, (Wait, Commit, Drain, FenceProxy, Flag, GridDependency)):
            return False
    return op.name != "compute" and not hands_over(op)


def hands_over(op: Op) -> bool:
    """Whether the warp meets to hand what its lanes hold to the thread that issues: the row numbers of a gather, given in registers."""
    rows = op.operands.get("rows") if op.name == "tma_gather" else None
    return isinstance(rows, Expr) and isinstance(rows.type, FragT)


@fact
def issue_roles(program: Program) -> frozenset[str]:
    """Roles whose every operation is a single thread's: waits, TMA and tensor-core issues, uniform loads, flags between CTAs.

    One elected lane of the first warp runs such a role, its waits included; the other warps only join role-wide operations.
    """
    alone = {block.role: True for block in program.body}
    for site in sites(program):
        if alone[site.role] and not issues_alone(site.op, program):
            alone[site.role] = False
    return frozenset(role for role, yes in alone.items() if yes)


def meets_to_issue(program: Program, role: str) -> bool:
    """Whether the lanes of a role's member meet in front of the first copy of a phase: one warp, whose lanes all wait and of which one issues.

    A lane that still waits for the slot when the copies of the others have come and gone would wait for a phase that is over.
    """
    return program.roles[role].member_warps == 1 and role not in issue_roles(program)
