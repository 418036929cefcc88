"""Q006: a ring is looked at only after enough steps."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.mentions import holding, mentions, words
from cake_ir.fault import Fault
from cake_ir.program import Assign, Do, Expr, For, If, Op, Program, Stmt
from cake_ir.types import SlotT
from cake_verify.analyses import ranges
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

ROOT = True

PAGE = Page(
    code="Q006",
    title="a slot before the ring's first step",
    statement="`lm.at(ring)` comes after a step of the role, and `s.prev(i)` where at least i steps came before the one that gave `s`, or under a condition on a loop variable. "
    "A ring without barriers has no phases, and there `s.prev(i)` of an early slot is one of the last slots.",
    why="Position -1 is slot `stages - 1` of a phase that never was: the operation waits for ever, or releases what nobody holds.",
    failing=edit(LOOP, ("                lm.arrive(empty, stage=s)", "                lm.arrive(empty, stage=s.prev())")),
    passing=LOOP,
    limits="A condition on a loop variable is believed; what it lets through is checked by the walk.",
)


def check(program: Program) -> Iterator[Fault]:
    if words(program).isdisjoint(_LOOKS):
        return
    looking = frozenset[int]()
    if not _LOOKS.isdisjoint(mentions(program)):
        having = holding(program)
        looking = looking.union(*(having[op] for op in having.keys() & _LOOKS))
    for block in program.body:
        yield from _Steps(program, block.role, looking).run(block.body)


_LOOKS = frozenset({"at", "prev"})
"""Expressions that look at a ring's steps."""


_MANY = 1 << 20


class _Steps:
    """Counts the steps that have happened, ring by ring, and the least position that each slot name can have. `looking` are operations with a look in them."""

    def __init__(self, program: Program, role: str, looking: frozenset[int]) -> None:
        self.program, self.role, self.looking = program, role, looking
        self.done: dict[str, int] = {}
        self.least: dict[str, int] = {}
        self.rings: dict[str, str] = {}
        self.bound: list[str] = []
        self.free = program.rings.keys() - {b.pipeline for b in program.barriers.values()}
        self.guards = 0
        self.found: dict[tuple[int, int], Fault] = {}

    def run(self, body: tuple[Stmt, ...]) -> list[Fault]:
        self.body(body)
        return list(self.found.values())

    def body(self, body: tuple[Stmt, ...]) -> None:
        for s in body:
            if isinstance(s, Assign):
                self.bound += s.targets
                if isinstance(s.value, Op):
                    self.operands(s.value)
                else:
                    self.assign(s, s.value)
            elif isinstance(s, Do):
                self.operands(s.op)
            elif isinstance(s, For):
                self.loop(s)
            else:
                self.branch(s)

    def assign(self, s: Assign, value: Expr) -> None:
        n = self.position(value)
        if value.op == "step":
            ring = str(value.attrs["ring"])
            n = self.done.get(ring, 0)
            self.done[ring] = n + 1
            self.rings[s.targets[0]] = ring
        if n is not None:
            self.least[s.targets[0]] = n
        else:
            self.expr(value)

    def loop(self, s: For) -> None:
        before, first = dict(self.done), len(self.bound)
        self.body(s.body)
        trips = self.trips(s)
        stepped = {ring: n - before.get(ring, 0) for ring, n in self.done.items() if n != before.get(ring)}
        for ring, per in stepped.items():
            self.done[ring] = before.get(ring, 0) + per * trips
        if stepped and trips > 1:  # behind the loop names are the slots of its last iteration
            for name in set(self.bound[first:]):
                ring = self.rings.get(name, "")
                if ring in stepped:
                    self.least[name] += stepped[ring] * (trips - 1)

    def trips(self, s: For) -> int:
        """How often a loop runs; many, where that is not known: what a loop that does not run would break is found by the walk."""
        if s.lo is None or s.hi is None:
            return _MANY
        lo, hi = (ranges.of(self.program, self.role, e).exact for e in (s.lo, s.hi))
        return max(0, hi - lo) if lo is not None and hi is not None else _MANY

    def branch(self, s: If) -> None:
        varies = any(e.op in ("var", "field") for e in s.cond.parts())
        self.guards += varies
        before = dict(self.done)
        self.body(s.then)
        then, self.done = self.done, dict(before)
        self.body(s.orelse)
        self.guards -= varies
        self.done = {r: max(then.get(r, 0), self.done.get(r, 0)) for r in {*then, *self.done}}  # what the other arm would break is found by the walk

    def operands(self, op: Op) -> None:
        for operand in op.operands.values() if op.id in self.looking else ():
            for e in operand if isinstance(operand, tuple) else (operand,):
                if isinstance(e, Expr):
                    self.expr(e)

    def expr(self, e: Expr) -> None:
        if e.op in ("at", "prev"):
            self.position(e)
            return
        for a in e.args:
            self.expr(a)

    def position(self, e: Expr) -> int | None:
        """The least position that a slot expression can have; faults where that is negative and nothing guards it."""
        if e.op == "var":
            return self.least.get(str(e.attrs["name"]))
        if e.op == "at":
            return self.checked(e, self.done.get(str(e.attrs["ring"]), 0) - 1, f"`lm.at({e.attrs['ring']})` comes before the first step of `{e.attrs['ring']}` by `{self.role}`")
        if e.op == "prev":
            n = self.position(e.args[0])
            back = int(e.attrs["back"])  # type: ignore[arg-type]  # an integer by construction
            if n is None:
                return None
            if isinstance(e.type, SlotT) and e.type.ring in self.free:
                return n - back
            return self.checked(e, n - back, f"`prev({'' if back == 1 else back})` looks {back} back, but only {max(0, n)} step{'' if n == 1 else 's'} came before this slot at first")
        return None

    def checked(self, e: Expr, n: int, message: str) -> int:
        if n < 0 and not self.guards:
            self.found.setdefault((e.span.line, e.span.column), Fault(
                "Q006", message, e.span, (), "step the ring first, or guard the first iterations: `if k > 0:`", (), {"position": n, "role": self.role},
            ))  # fmt: skip
        return max(n, 0)
