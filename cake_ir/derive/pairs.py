"""Pairs of CTAs that multiply together: who runs what, and where arrivals on a pair's barriers count.

The CTAs of a pair have ranks that differ in the last bit; the even one leads. A role that issues products of pairs runs in leaders only: one
thread issues for both, and what it reads and writes lies in both. A barrier of `scope="cluster"` joins such a role to the rest of the pair.
Where the role waits on it, both CTAs arrive at the leader's object (*gathered*); where the role arrives, or commits, it does so at both
objects (*spread*). With `scope="cta"` each CTA's object is its own, as everywhere.
"""

from __future__ import annotations

from typing import Literal

from cake_ir.derive.structure import sites
from cake_ir.fact import fact
from cake_ir.program import Op, Program

Join = Literal["gathered", "spread"]


def leader(rank: int) -> int:
    """The rank of the CTA that leads the pair of `rank`."""
    return rank & ~1


def pair(rank: int) -> tuple[int, int]:
    """The ranks of a pair, its leader first."""
    return rank & ~1, rank | 1


@fact
def paired_roles(program: Program) -> frozenset[str]:
    """Roles that issue products of pairs."""
    if program.launch.cluster[0] % 2:
        return frozenset()  # H023: there are no pairs
    return frozenset(s.role for s in sites(program) if s.op.name == "mma" and s.op.attrs.get("ctas") == 2)


def of_pair(program: Program, op: Op) -> bool:
    """Whether one thread of the leading CTA issues a tensor-core operation for both: a product of a pair, or a copy beside such products."""
    return op.attrs.get("ctas") == 2 or (op.name == "tmem_copy" and bool(paired_roles(program)))


def runs(program: Program, role: str, rank: int) -> bool:
    """Whether a role's block is executed by the CTA of this rank."""
    return not rank & 1 or role not in paired_roles(program)


@fact
def joins(program: Program) -> dict[str, Join]:
    """The barriers that join a pair's issuing role to the rest of the pair, by name."""
    paired = paired_roles(program)
    out: dict[str, Join] = {}
    for b in program.barriers.values() if paired else ():
        if b.scope != "cluster":
            continue
        if b.cons and paired.issuperset(b.cons):
            out[b.name] = "gathered"
        elif b.prod and paired.issuperset(b.prod):
            out[b.name] = "spread"
    return out


def landing(program: Program, barrier: str, rank: int) -> int:
    """The CTA on whose object the loads of CTA `rank` complete."""
    return leader(rank) if joins(program).get(barrier) == "gathered" else rank
