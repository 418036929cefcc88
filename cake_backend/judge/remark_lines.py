"""Where in the schedule a remark belongs that the assembler gives no line for: the declaration that it is about."""

from __future__ import annotations

from collections.abc import Callable

from cake_ir.derive.registers import wgmma_registers
from cake_ir.derive.structure import sites
from cake_ir.program import Expr, Program, Role
from cake_ir.span import Span
from cake_ir.types import FragT
from cake_verify.analyses.held_registers import held


def declared_line(code: str, program: Program) -> int | None:
    """The schedule's line that a remark with this code is about, where the program alone tells."""
    find = _FINDERS.get(code)
    span = find(program) if find is not None else None
    return span.line if span is not None else None


def _budget(program: Program) -> Span | None:
    """The budget that is smaller than what its role's MMAs need, or the first there is."""
    given = [r for r in program.roles.values() if r.regs is not None]
    for r in given:
        if r.regs is not None and r.regs < _needed(program, r):
            return r.spans.get("regs", r.span)
    return given[0].spans.get("regs", given[0].span) if given else None


def _needed(program: Program, role: Role) -> int:
    """Registers that the largest MMA of a role needs by itself."""
    needs = [0]
    for site in sites(program):
        acc, a = site.op.operands.get("acc"), site.op.operands.get("a")
        if site.role == role.name and site.op.attrs.get("kind") == "wgmma" and isinstance(acc, Expr) and isinstance(acc.type, FragT):
            needs.append(wgmma_registers(acc.type, a.type if isinstance(a, Expr) else None))
    return max(needs)


def _bounds(program: Program) -> Span | None:
    return program.launch.spans.get("ctas_per_sm", program.launch.span)


def _fullest(program: Program) -> Span | None:
    """The MMA at which most registers are alive."""
    most = max(held(program).values(), key=lambda h: h.registers, default=None)
    return most.op.span if most is not None else None


def _tightest(program: Program) -> Span | None:
    """Where registers run out: the MMA at which most are alive, else the smallest budget, else the first role."""
    fullest = _fullest(program)
    if fullest is not None:
        return fullest
    given = sorted((r.regs, r.name) for r in program.roles.values() if r.regs is not None)
    roles = [program.roles[name] for _, name in given] or list(program.roles.values())
    return (roles[0].spans.get("regs") or roles[0].span) if roles else None


_FINDERS: dict[str, Callable[[Program], Span | None]] = {
    "C7507": _budget, "C7508": _budget, "bounds-ignored": _bounds, "C7510": _fullest, "C7511": _fullest, "C7512": _fullest, "C7600": _tightest, "C7602": _tightest,
    "spill": _tightest, "sass-local": _tightest, "sass-serialised": _fullest,
}  # fmt: skip
