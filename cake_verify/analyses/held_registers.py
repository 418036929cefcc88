"""Registers that wgmma groups hold in a role: accumulators and A operands that are certainly alive together at an MMA."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cake_ir.derive.acting import acting
from cake_ir.derive.mma_groups import mma_groups, wgmma_roles
from cake_ir.derive.registers import fragment_registers
from cake_ir.fact import fact
from cake_ir.ops import effects_of
from cake_ir.ops.effects import Drain
from cake_ir.program import Expr, For, If, Op, Program, Stmt, op_of
from cake_ir.record import record
from cake_ir.types import FragT
from cake_verify.analyses.sites import sites

Places = Mapping[str, int]
"""Registers a thread by the name of the place."""


@record()
class Held:
    """The fullest moment of a role: the MMA, and what is held while it runs."""

    op: Op
    places: dict[str, int]

    @property
    def registers(self) -> int:
        return sum(self.places.values())


@fact
def held(program: Program) -> dict[str, Held]:
    """By role, the MMA at which most registers are held.

    Held are, for certain: the MMA's own operands, those of the groups in flight, and accumulators that a loop around it carries from round
    to round. What else lives there comes on top.
    """
    out: dict[str, Held] = {}
    for block in (b for b in program.body if b.role in wgmma_roles(program)):
        walk = _Walk(program, block.role)
        walk.block(block.body, (), {})
        if walk.most is not None:
            out[block.role] = walk.most
    return out


def at_most(program: Program) -> dict[str, int]:
    """By role the registers of all places of its MMAs together: more are never held, and mostly those are few enough."""
    places: dict[str, dict[str, int]] = {}
    for s in sites(program).of("mma"):
        if s.op.attrs.get("kind") == "wgmma":
            mine = places.setdefault(s.role.name, {})
            for name, registers in _operands(s.op).items():
                mine[name] = max(registers, mine.get(name, 0))
    return {role: sum(mine.values()) for role, mine in places.items()}


_STEPS, _MOST = 20_000, 64
"""Statements that are looked at, since a loop's body is walked twice where groups stay in flight; groups that are kept apart."""


class _Walk:
    def __init__(self, program: Program, role: str) -> None:
        self.program, self.role = program, role
        self.opens = mma_groups(program).opens
        self.drains = {s.op for s in acting(program).get(Drain, ())}
        self.most: Held | None = None
        self.steps = 0

    def block(self, body: Iterable[Stmt], flying: tuple[Places, ...], carried: Places) -> tuple[Places, ...]:
        for s in body:
            self.steps += 1
            if self.steps > _STEPS:
                break
            if isinstance(s, For):
                inner = {**carried, **_carried(self.program, self.role, s)}
                after = self.block(s.body, flying, inner)
                flying = self.block(s.body, after, inner) if len(after) > len(flying) else after
            elif isinstance(s, If):
                flying = max(self.block(s.then, flying, carried), self.block(s.orelse, flying, carried), key=len)
            elif (op := op_of(s)) is not None:
                flying = self.op(op, flying, carried)
        return flying

    def op(self, op: Op, flying: tuple[Places, ...], carried: Places) -> tuple[Places, ...]:
        if op.attrs.get("kind") == "wgmma":
            own = _operands(op)
            joins = bool(flying) and op.id not in self.opens
            flying = (*flying[:-1], {**flying[-1], **own}) if joins else (*flying[1 - _MOST :], own)
            together = dict(carried)
            for group in flying:
                for name, registers in group.items():
                    together[name] = max(registers, together.get(name, 0))
            if self.most is None or sum(together.values()) > self.most.registers:
                self.most = Held(op, together)
        elif op in self.drains and any(isinstance(e, Drain) and e.engine == "wgmma" for e in effects_of(op, self.program)):
            pending = int(op.attrs.get("pending") or 0)  # type: ignore[arg-type]  # an integer by its kind
            flying = flying[max(0, len(flying) - pending) :] if pending else ()
        return flying


def _carried(program: Program, role: str, loop: For) -> dict[str, int]:
    """Accumulators of a loop's body that go on from the round before: never started afresh in it, by an MMA or an assignment."""
    found: dict[str, int] = {}
    fresh: set[str] = set()
    for s in sites(program).of("mma"):
        op = s.op
        if loop not in s.loops or op.attrs.get("kind") != "wgmma":
            continue
        acc, init = op.operands["acc"], op.operands.get("init")
        assert isinstance(acc, Expr) and isinstance(acc.type, FragT)
        if isinstance(init, Expr) and init.op == "const" and init.attrs["value"]:
            fresh.add(_name(acc))
        elif acc.op == "var":
            found[_name(acc)] = fragment_registers(acc.type)
    return {name: registers for name, registers in found.items() if name not in fresh and not _assigned(program, role, loop, name)}


def _assigned(program: Program, role: str, loop: For, name: str) -> bool:
    """Whether a statement of a loop's body binds a name."""
    key = (role, name)
    return any(loop in s.loops for s in sites(program).results.get(key, ())) or any(loop in b.path for b in sites(program).bindings.get(key, ()))


def _operands(op: Op) -> dict[str, int]:
    """The places of one MMA; an A operand that is computed in place has one of its own."""
    out: dict[str, int] = {}
    for parameter in ("acc", "a"):
        e = op.operands[parameter]
        if isinstance(e, Expr) and isinstance(e.type, FragT):
            name = _name(e) if parameter == "acc" or e.op in ("var", "frag_stage", "cols", "rows") else f"a of line {e.span.line}"
            out[name] = fragment_registers(e.type)
    return out


def _name(e: Expr) -> str:
    while e.op != "var" and e.args:
        e = e.args[0]
    return str(e.attrs.get("name", e.op))
