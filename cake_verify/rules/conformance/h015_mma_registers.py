"""H015: the registers of a role hold the MMA groups that it keeps alive together."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.registers import MMA_BESIDE, entry_registers, wgmma_registers
from cake_ir.fault import Fault
from cake_ir.program import Expr, Program, Role
from cake_ir.targets import target
from cake_ir.types import FragT
from cake_verify.analyses.held_registers import Held, at_most, held
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

_TWO = edit(
    LOOP, ('        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")', '        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")\n'
           '        low = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")'),
    ("                lm.mma(acc, a[s], b[s], init=(k == 0))", "                lm.mma(acc, a[s].cols(0, 32), b[s].cols(0, 32), init=(k == 0))\n"
     "                lm.mma(low, a[s].cols(32, 32), b[s].cols(32, 32), init=(k == 0))"),
    ("lm.cast(acc, lm.bf16)", "lm.cast(acc + low, lm.bf16)"),
)  # fmt: skip

PAGE = Page(
    code="H015",
    title="MMA groups that the registers do not hold",
    statement="Accumulators and A operands that are alive together at a wgmma fit the registers of their role (its `regs`, or the launch value; at most 255) with 26 to spare.",
    why="Otherwise the assembler runs every MMA of the kernel by itself, with a wait behind it, and spills (remarks C7511 and C7512): the result is right, and 1.8 times slower in attention.",
    failing=edit(_TWO, ("regs=232", "regs=152")),
    passing=_TWO,
    limits="Counted is what is certainly alive: the operands of groups in flight, and accumulators that a loop carries. Everything else a thread holds comes on top, so a role that "
    "passes may still spill; the compiler's report says so.",
    sources=("HW063",),
    severity="warning",
)


def check(program: Program) -> Iterator[Fault]:
    if not program.target or not target(program.target).has("WGMMA"):
        return
    if all([n + MMA_BESIDE <= _has(program, program.roles[name]) for name, n in at_most(program).items()]):
        return
    for name, most in held(program).items():
        role = program.roles[name]
        has = _has(program, role)
        needed = most.registers + MMA_BESIDE
        if needed <= has or _alone(most) > has:
            continue  # H006 speaks of one MMA that does not fit by itself
        parts = ", ".join(f"`{place}` {registers}" for place, registers in most.places.items())
        yield Fault(
            "H015", f"`{name}` keeps {most.registers} registers of MMA operands alive here ({parts}) and needs {MMA_BESIDE} beside, it has {has}: the assembler will serialise its MMAs", most.op.span,
            ((role.spans.get("regs", role.span), f"{has} registers a thread"),), "narrow a tile, split the role into more members, or wait for one accumulator before the next starts",
            facts={"expected": needed, "found": has, "role": name}, severity="warning",
        )  # fmt: skip


def _has(program: Program, role: Role) -> int:
    """The registers that a thread of a role has."""
    return min(target(program.target).max_regs, role.regs if role.regs is not None else entry_registers(program))


def _alone(most: Held) -> int:
    acc, a = most.op.operands["acc"], most.op.operands["a"]
    assert isinstance(acc, Expr) and isinstance(acc.type, FragT)
    return wgmma_registers(acc.type, a.type if isinstance(a, Expr) else None)
