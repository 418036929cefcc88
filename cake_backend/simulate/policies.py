"""Interleaving policies: who goes next, a warp or a completion.

Every warp and every piece of asynchronous work has a rank; of those that can go, one of the lowest rank goes. Uniform choice alone misses
real faults: a copy or a multiplication must be made to complete as late as it can, one warp must be starved and stepped one operation at
a time, the warps of one member must drift apart. Each of these is a policy; all draw from one seed.

============================  =========================================================================================
name                          who goes first
============================  =========================================================================================
canonical                     warps in turn, each until it blocks; asynchronous work at once, in order of issue
uniform                       any, one operation at a time
eager                         asynchronous work as soon as it is issued; warps at random
late                          asynchronous work only when no warp can go
late:KIND                     the same for one kind (tma store mma cp_async tmem upstream), the other kinds at random
last:OP                       the same for the work that operation number OP issues
newest                        as late, the youngest work before older
starve:ROLE or ROLE.MEMBER    everything else, late work included; the starved warps one operation at a time
hungry:ROLE or ROLE.MEMBER    as starve, but the starved warps go before late multiplications and stores
lead:W / lag:W                warp W of every member runs ahead of (behind) the others as far as barriers let it
behind:high, behind:low       CTAs one after the other as far as they get: those of high (low) number last
drift                         as uniform with one warp of each member, drawn afresh at times, far ahead of the others
priorities                    random ranks, some redrawn now and then
============================  =========================================================================================
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from cake_backend.simulate.engines import KINDS, Work
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Flag, GridDependency, Issue, Touch
from cake_ir.program import Program

if TYPE_CHECKING:
    from cake_backend.simulate.state import Warp

Actor = Union["Warp", Work]
_FOREVER = 1 << 30


@dataclass(frozen=True, slots=True)
class Policy:
    """A named order; see the module's table. `name` is what `simulate(policy=..)` takes."""

    name: str

    @property
    def head(self) -> str:
        return self.name.partition(":")[0]

    @property
    def argument(self) -> str:
        return self.name.partition(":")[2]


_HEADS = ("canonical", "uniform", "eager", "late", "last", "newest", "starve", "hungry", "lead", "lag", "behind", "drift", "priorities")


def policy_named(name: str) -> Policy:
    """The policy of that name; raises `ValueError` for an unknown one."""
    p = Policy(name)
    if (
        p.head not in _HEADS
        or (p.head == "late" and p.argument and p.argument not in KINDS)
        or (p.head in ("lead", "lag", "last") and not p.argument.isdigit())
        or (p.head == "behind" and p.argument not in ("high", "low"))
    ):
        raise ValueError(f"no interleaving policy is called {name}")
    return p


_ENGINE_KINDS = {
    "tma": "tma",
    "bulk": "store",
    "wgmma": "mma",
    "tcgen05": "mma",
    "cp_async": "cp_async",
    "st_async": "tma",
    "tmem_ld": "tmem",
    "tmem_st": "tmem",
}


def adversaries(program: Program) -> tuple[Policy, ...]:
    """The policies that a program's faults need: every kind of work it has late, every role and member starved, its warps apart."""
    kinds = {_ENGINE_KINDS[e.engine] for op in program.ops for e in effects_of(op, program) if isinstance(e, Issue)}
    if any(e == GridDependency("wait") for op in program.ops for e in effects_of(op, program)):
        kinds.add("upstream")
    names = ["canonical", "uniform", "late"]
    names += [f"late:{k}" for k in KINDS if k in kinds and len(kinds) > 1]
    issuers = [op.id for op in program.ops if any(isinstance(e, Issue) for e in effects_of(op, program))]
    names += [f"last:{i}" for i in issuers] + ["newest"] if len(issuers) > 1 else []
    roles = [program.roles[b.role] for b in program.body]
    for r in dict.fromkeys(roles):
        whole = [r.name] if len(roles) > 1 else []
        parts = [f"{r.name}.{i}" for i in range(r.members)] if r.members > 1 else []
        names += [f"{how}:{who}" for who in whole + parts for how in ("starve", "hungry")]
    widest = max((r.member_warps for r in roles), default=1)
    if widest > 1:
        names += [f"{how}:{w}" for how in ("lead", "lag") for w in dict.fromkeys((0, widest - 1))] + ["drift"]
    if _shares(program):
        names += ["behind:high", "behind:low"]
    return tuple(Policy(n) for n in [*names, "eager", "priorities"])


def _shares(program: Program) -> bool:
    """Whether a launch reads tensors that it writes, or its blocks follow each other by flags."""
    seen: dict[str, str] = {}
    for op in program.ops:
        for e in effects_of(op, program):
            if isinstance(e, Flag):
                return True
            for t in e.touches if isinstance(e, Issue) else (e,):
                if isinstance(t, Touch) and t.space == "gmem":
                    name = str(op.attrs[t.operand])
                    seen[name] = seen.get(name, "") + t.mode
    return any("r" in modes and "w" in modes for modes in seen.values())


class Chooser:
    """A policy at work in one run."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self.policy = policy
        self.random = random.Random(f"{policy.name} {seed}")
        self.head, self.argument = policy.head, policy.argument
        self.clock = 0
        self.entered = 0
        self.ordered = self.head == "canonical"
        self.drawn: dict[str, float] = {}

    def enter(self, actor: Actor) -> None:
        """Give a new actor its rank."""
        actor.rank = self._work(actor) if isinstance(actor, Work) else self._warp(actor)

    def _work(self, work: Work) -> float:
        if self.head in ("canonical", "eager"):
            return -1
        if self.head in ("starve", "hungry"):
            late = work.kind in ("mma", "store") and self.random.random() < 0.8
            return 8 if late else 0
        if self.head in ("lead", "lag"):
            return self.random.choice((0, 0, 9))
        if self.head == "priorities":
            return self.drawn.setdefault(f"{work.kind}", self.random.random()) if self.random.random() < 0.7 else self.random.random()
        if self.head == "last":
            return 9 if self.argument == str(work.op.id) else 0
        if self.head == "newest":
            self.entered += 1
            return 1e9 - self.entered
        if self.head == "late":
            return 9 if self.argument in ("", work.kind) else 0
        return 0

    def _warp(self, warp: Warp) -> float:
        if self.head in ("starve", "hungry"):
            role, _, member = self.argument.partition(".")
            mine = warp.role.name == role and member in ("", str(warp.member))
            return (10 if self.head == "starve" else 5) if mine else 0
        if self.head == "behind":
            return warp.cta.number if self.argument == "high" else -warp.cta.number
        if self.head in ("lead", "lag"):
            mine = warp.warp == min(int(self.argument), warp.width - 1) and warp.width > 1
            return 0 if not mine else -2 if self.head == "lead" else 7
        if self.head == "priorities":
            return self.random.random()
        return 0

    def choose(self, actors: Sequence[Actor]) -> Actor:
        """One of the actors that can go; never called without any."""
        self.clock += 1
        if self.head in ("priorities", "drift") and self.clock % 64 == 0:
            self._redraw(actors)
        best = min(a.rank for a in actors)
        first = [a for a in actors if a.rank == best]
        if self.ordered:
            pick = min(first, key=lambda a: a.last)
        else:
            pick = first[0] if len(first) == 1 else first[int(self.random.random() * len(first))]
        pick.last = self.clock
        return pick

    def _redraw(self, actors: Sequence[Actor]) -> None:
        for _ in range(3):
            a = actors[int(self.random.random() * len(actors))]
            if self.head == "priorities":
                a.rank = self.random.random()
            elif not isinstance(a, Work):
                a.rank = -1 if a.rank == 0 and self.random.random() < 0.5 else 0

    def burst(self, actor: Actor) -> int:
        """Operations that a warp may execute before the next choice."""
        if self.ordered:
            return _FOREVER
        if self.head in ("starve", "hungry") and actor.rank > 0:
            return 1
        if self.head in ("lead", "lag", "late", "last", "newest", "starve", "hungry"):
            return 1 + int(self.random.random() * 6)
        return 1 if self.random.random() < 0.5 else 4
