"""Products of matrices that nobody uses, followed backwards through the text of a role, member by member.

A place is live where a later operation may read what it holds. A product that starts from zero ends the life of what its accumulator held
before, so that a sum which is carried along and then thrown away is found although it is read in every round, by its own update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from cake_ir.derive.structure import for_member, sites
from cake_ir.fault import Fault
from cake_ir.program import Assign, Expr, For, If, Op, Program, Stmt, op_of
from cake_verify.analyses import edits
from cake_verify.analyses.dead_values import Flow, flow_of, places_of
from cake_verify.analyses.words import call

Live = frozenset[str]


class _Member:
    """One member's way through a role: `killed_by` tells the product that starts from zero after each operation in vain."""

    def __init__(self, program: Program, member: int, flow: Callable[[Op, Stmt], Flow]) -> None:
        self.program, self.member, self.flow = program, member, flow
        self.vain: dict[int, Op] = {}
        self.used: set[int] = set()
        self.sinks: set[int] = set()
        self.killer: dict[str, Op] = {}
        self.rounds: dict[int, Live] = {}
        self.grown = True

    def walk(self, body: tuple[Stmt, ...]) -> None:
        """Follow a role's text until no loop finds more that is live at its end."""
        while self.grown:
            self.grown = False
            self.before(body, frozenset())

    def before(self, body: tuple[Stmt, ...], live: Live) -> Live:
        """What is live in front of a block, `live` behind it."""
        for s in reversed(body):
            if isinstance(s, For):  # what the next round reads is live at the end of this one
                behind = self.rounds.get(id(s), live) | live
                live = behind | self.before(s.body, behind)
                self.grown |= live != self.rounds.get(id(s))
                self.rounds[id(s)] = live
            elif isinstance(s, If):
                taken = for_member(s.cond, self.member)
                if taken is None:
                    live = self.before(s.then, live) | self.before(s.orelse, live)
                else:
                    live = self.before(s.then if taken else s.orelse, live)
            else:
                op = op_of(s)
                if op is not None:
                    live = self.operation(op, s, live)
        return live

    def operation(self, op: Op, s: Stmt, live: Live) -> Live:
        f = self.flow(op, s)
        if f.sink:
            self.sinks.add(op.id)
            return live | f.reads
        if f.writes and not f.writes & live:
            if op.id not in self.used:
                self.vain[op.id] = next((self.killer[n] for n in sorted(f.writes) if n in self.killer), op)
            return live
        self.used.add(op.id)
        self.vain.pop(op.id, None)
        acc = op.operands.get("acc") if op.name == "mma" else None
        if acc is None:
            return (live - f.writes if isinstance(s, Assign) else live) | f.reads
        init = op.operands.get("init")
        fresh = isinstance(init, Expr) and init.op == "const" and bool(init.attrs["value"])
        if fresh and isinstance(acc, Expr) and acc.op == "var":
            self.killer[str(acc.attrs["name"])] = op
            live -= {str(acc.attrs["name"])}
        return live | f.reads


def thrown_away(program: Program) -> Iterator[Fault]:
    """One fault a role at most: a product whose accumulator is started from zero again, or that only some members use."""
    for role in program.roles.values():
        body = tuple(s for block in program.body if block.role == role.name for s in block.body)
        members = [_walked(program, m, body) for m in range(role.members)]
        fault = next((f for m in members for f in _overwritten(program, role.name, m)), None)
        if fault is None and role.members > 1:
            fault = next((f for m in members for f in _unshared(program, role.name, m, members)), None)
        if fault is not None:
            yield fault


def _walked(program: Program, member: int, body: tuple[Stmt, ...]) -> _Member:
    m = _Member(program, member, partial(flow_of, program=program))
    m.walk(body)
    return m


def _overwritten(program: Program, role: str, m: _Member) -> Iterator[Fault]:
    """Updates in place, and products, that a product from zero throws away."""
    where = {s.op.id: [id(x) for x, _ in s.around] for s in sites(program)}
    for number, killer in sorted(m.vain.items()):
        op = program.ops[number]
        acc = killer.operands.get("acc")
        if killer is op or not isinstance(acc, Expr):
            continue
        name = str(acc.attrs["name"])
        together = where[number] == where[killer.id]
        if op.name == "mma" and together and all(_alike(op.operands.get(k), killer.operands.get(k)) for k in ("a", "b")):
            continue  # the same product once more: nothing is lost but time
        if op.name != "mma" and name not in {n for e in op.operands.values() if isinstance(e, Expr) for n in places_of(e)}:
            continue
        what = "the product" if op.name == "mma" else "the update"
        message = f"{call(killer)} starts `{name}` from zero, and {what} of line {op.span.line} that it holds is thrown away"
        fixes = (edits.replace(killer.spans["init"], "False", "likely", "go on from what the accumulator holds"),) if "init" in killer.spans else ()
        yield Fault("S036", message, killer.span, ((op.span, f"`{name}` gets here what nobody uses"),), "leave `init` out, or leave the work out", fixes,
                    {"role": role, "place": name})  # fmt: skip


def _alike(one: object, other: object) -> bool:
    """Whether two operands are written alike."""
    if not isinstance(one, Expr) or not isinstance(other, Expr):
        return one is other
    return one.op == other.op and one.attrs == other.attrs and len(one.args) == len(other.args) and all(map(_alike, one.args, other.args))


def _unshared(program: Program, role: str, m: _Member, members: list[_Member]) -> Iterator[Fault]:
    """Products that this member makes in vain and another one uses: told at the condition that keeps the member from what uses them."""
    for number in sorted(m.vain):
        op = program.ops[number]
        others = [o for o in members if number in o.used]
        if op.name != "mma" or not others:
            continue
        acc = op.operands.get("acc")
        name = next(iter(sorted(places_of(acc))), "the accumulator") if isinstance(acc, Expr) else "the accumulator"
        kept = [s for s in sites(program) if s.op.id in others[0].used | others[0].sinks and s.op.id > number and s.op.id not in m.used | m.sinks]
        reader = next((s for s in kept if any(name in places_of(e) for e in s.op.operands.values() if isinstance(e, Expr))), kept[0] if kept else None)
        guard = next((c for c, arm in reversed(reader.around) if isinstance(c, If) and for_member(c.cond, m.member) not in (None, arm)), None) if reader else None
        related = ((op.span, f"member {m.member} computes `{name}` here"),) if guard else ()
        related += ((reader.op.span, "other members use it here"),) if reader else ()
        yield Fault("S036", f"member {m.member} of `{role}` never uses its product in `{name}`" + (", from which this condition keeps it away" if guard else ""),
                    guard.cond.span if guard else op.span, related, f"let member {m.member} use it, or leave its work out", (),
                    {"role": role, "place": name, "member": m.member})  # fmt: skip
