"""H012: every path to a point of a role leaves the same MMA groups in flight."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.acting import acting
from cake_ir.derive.mma_groups import mma_groups, wgmma_roles
from cake_ir.derive.structure import sites
from cake_ir.fault import Fault
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Drain, Issue
from cake_ir.program import Expr, For, If, Op, Program, Stmt, op_of
from cake_ir.types import FragT
from cake_verify.analyses import edits
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

TARGETED = False

PAGE = Page(
    code="H012",
    title="MMA groups in flight differ between paths",
    statement="Where the two arms of an `if` meet, both leave the same list of wgmma groups in flight (accumulator and A registers); at a loop's head an iteration may only have added "
    "groups behind those that were in flight when the loop was entered.",
    why="Registers of a group in flight are written behind the compiler's back. Where paths disagree about which these are, the assembler gives up and waits after every wgmma: the "
    "result is right and the kernel several times slower.",
    failing=edit(LOOP, ("                lm.mma(acc, a[s], b[s], init=(k == 0))\n                lm.mma_wait(pending=0)",
                        "                if k > 0:\n                    lm.mma(acc, a[s], b[s])\n                else:\n                    lm.mma(acc, a[s], b[s], init=True)\n                    lm.mma_wait(pending=0)\n                lm.mma_wait(pending=0)")),
    passing=LOOP,
    limits="A condition that encloses no MMA and no wait for MMAs is free, and so are arms that both drain.",
    sources=("HW062", "HW063"),
)

Group = tuple[str, int]
"""Names of the registers that a group holds, as one string, and the operation that issued it."""


def check(program: Program) -> Iterator[Fault]:
    for block in program.body:
        if block.role in wgmma_roles(program):
            yield from _Walk(program).run(block.body)


_STEPS, _MOST = 20_000, 64
"""Statements that are looked at, since loops inside loops are walked twice each; groups in flight that are kept apart."""


class _Walk:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.groups = {s.op for kind in (Issue, Drain) for s in acting(program).get(kind, ())}  # what may open or end one
        self.found: list[Fault] = []
        self.steps = 0

    def run(self, body: tuple[Stmt, ...]) -> list[Fault]:
        self.block(body, ())
        unique = {f.span: f for f in self.found}
        return list(unique.values())

    def block(self, body: tuple[Stmt, ...], state: tuple[Group, ...]) -> tuple[Group, ...]:
        for s in body:
            self.steps += 1
            if self.steps > _STEPS:
                return state
            if isinstance(s, For):
                state = self.loop(s, state)
            elif isinstance(s, If):
                then, orelse = self.block(s.then, state), self.block(s.orelse, state)
                if [g for g, _ in then] != [g for g, _ in orelse]:
                    self.differ(s, then, orelse)
                state = max(then, orelse, key=len)
            elif (op := op_of(s)) in self.groups:
                assert op is not None
                state = self.op(op, state)
        return state

    def loop(self, s: For, entry: tuple[Group, ...]) -> tuple[Group, ...]:
        back = self.block(s.body, entry)
        names = [g for g, _ in entry]
        if [g for g, _ in back][: len(names)] != names:
            self.carried(s, entry, back)
            return back
        if len(back) > len(entry):
            back = self.block(s.body, back)  # the steady state: what a branch inside sees from the second iteration on
        return back

    def op(self, op: Op, state: tuple[Group, ...]) -> tuple[Group, ...]:
        for effect in effects_of(op, self.program):
            if isinstance(effect, Issue) and effect.engine == "wgmma":
                last = state[-1] if state else None
                if last is not None and op.id not in mma_groups(self.program).opens:
                    state = (*state[:-1], (f"{last[0]} {_registers(op)}", op.id))
                else:
                    state = (*state, (_registers(op), op.id))
            elif isinstance(effect, Drain) and effect.engine == "wgmma":
                pending = int(op.attrs.get("pending") or 0)  # type: ignore[arg-type]  # an integer by its kind
                state = state[len(state) - pending :] if pending else ()
        return state[-_MOST:]

    def differ(self, s: If, then: tuple[Group, ...], orelse: tuple[Group, ...]) -> None:
        more = max(then, orelse, key=len)
        last = self.program.ops[more[-1][1]]
        at, groups = last.span, mma_groups(self.program)
        stmt = next((x.stmt for x in sites(self.program) if x.op is last), None)
        alone = last.id in groups.opens and last.id in groups.closes
        drain = (edits.after(stmt.span, "lm.mma_wait(pending=0)"),) if stmt is not None and alone else ()
        arm = "taken" if more is then else "not taken"
        self.found.append(Fault(
            "H012", f"this condition leaves {len(then)} MMA group{'' if len(then) == 1 else 's'} in flight when taken and {len(orelse)} when not", s.head,
            ((at, f"in flight where the branch is {arm}"),), "drain both arms with `lm.mma_wait(pending=0)`, or peel the iteration that differs out of the loop", drain,
            {"then": [g for g, _ in then], "else": [g for g, _ in orelse]},
        ))  # fmt: skip

    def carried(self, s: For, entry: tuple[Group, ...], back: tuple[Group, ...]) -> None:
        at = self.program.ops[entry[0][1]].span
        self.found.append(Fault(
            "H012", "an iteration retires MMA groups that were in flight when the loop was entered", s.head, ((at, "in flight before the loop"),),
            "drain before the loop, or peel its first iteration", (), {"entry": [g for g, _ in entry], "back": [g for g, _ in back]},
        ))  # fmt: skip


def _registers(op: Op) -> str:
    names = []
    for name in ("acc", "a"):
        e = op.operands[name]
        if isinstance(e, Expr) and isinstance(e.type, FragT):
            names.append(_place(e))
    return " ".join(names)


def _place(e: Expr) -> str:
    while e.op != "var" and e.args:
        e = e.args[0]
    return str(e.attrs.get("name", e.op))
