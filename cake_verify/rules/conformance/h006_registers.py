"""H006: register budgets that the hardware can hand out."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.registers import MMA_N256_LAUNCH, entry_registers, pool_columns
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Expr, Program, Role
from cake_ir.targets import target
from cake_ir.types import FragT
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import LOOP, edit

PAGE = Page(
    code="H006",
    title="a register budget that cannot be granted",
    statement="`regs` is a multiple of 8 from 24 to 256; where any role has one, every role is made of whole warpgroups; for each warp index modulo 4 the budgets sum to at "
    "most what these warps started with; an accumulator of 256 columns needs 154 registers at launch.",
    why="setmaxnreg is executed by whole warpgroups and takes registers from a pool per SM sub-partition: a raise that the pool cannot serve blocks for ever (40 + 232 + 232 "
    "fits 384 threads, 40 + 232 + 240 hangs). An accumulator larger than the launch value does not compile, whatever a role raises later.",
    failing=edit(LOOP, ("regs=232", "regs=240"), ("regs=40", "regs=280")),
    passing=LOOP,
    limits="A raise is assumed to come after every lowering, since roles change their budget when they start. Whether the code of a role fits its budget is the compiler's report.",
    sources=("HW002", "HW065", "HW066"),
)


def check(program: Program) -> Iterator[Fault]:
    if not program.target:
        return
    if target(program.target).has("SETMAXNREG") and any(r.regs is not None for r in program.roles.values()):
        ranges = list(_range(program))
        yield from ranges
        yield from _warpgroups(program)
        if not ranges:
            yield from _pool(program)
    yield from _accumulators(program)


def _range(program: Program) -> Iterator[Fault]:
    for r in program.roles.values():
        if r.regs is None or (24 <= r.regs <= 256 and r.regs % 8 == 0):
            continue
        near = min(256, max(24, (r.regs + 4) // 8 * 8))
        span = r.spans.get("regs", r.span)
        yield Fault("H006", f"`{r.name}` asks for {r.regs} registers a thread, a budget is a multiple of 8 from 24 to 256", span, (), f"take {near}",
                    (Fix((Edit(span, str(near)),), "likely", f"take {near}"),), {"expected": near, "found": r.regs, "role": r.name})  # fmt: skip


def _warpgroups(program: Program) -> Iterator[Fault]:
    for r in program.roles.values():
        if r.warp_lo % 4 == 0 and r.warp_hi % 4 == 0:
            continue
        lo, hi = r.warp_lo // 4 * 4, -(-r.warp_hi // 4) * 4
        taken = any(o is not r and o.warp_lo < hi and lo < o.warp_hi for o in program.roles.values())
        span = r.spans.get("warps", r.span)
        fix = () if taken else (Fix((Edit(span, f"range({lo}, {hi})"),), "likely", "pad the role to whole warpgroups"),)
        yield Fault(
            "H006", f"`{r.name}` has warps {r.warp_lo} to {r.warp_hi - 1}, budgets are set by whole warpgroups of 4 warps", span,
            tuple((o.spans["regs"], f"`{o.name}` has a budget") for o in program.roles.values() if o.regs is not None and "regs" in o.spans)[:2],
            "pad the role to whole warpgroups" if not taken else "place the roles on multiples of 4 warps", fix, {"role": r.name, "expected": [lo, hi], "found": [r.warp_lo, r.warp_hi]},
        )  # fmt: skip


def _pool(program: Program) -> Iterator[Fault]:
    entry = entry_registers(program)
    for column in pool_columns(program):
        if column.asked <= column.granted:
            continue
        highest = max((r for r in program.roles.values() if r.regs is not None), key=lambda r: r.regs or 0)
        span = highest.spans.get("regs", highest.span)
        terms = " + ".join(str(r) for r in column.budgets)
        yield Fault(
            "H006", f"the registers of warps {column.column} modulo 4 sum to {terms} = {column.asked}, they start with {len(column.budgets)} x {entry} = {column.granted}", span,
            tuple((r.span, f"`{r.name}`: {r.regs if r.regs is not None else f'{entry}, its entry value'}") for r in program.roles.values() if r is not highest)[:4],
            "the raise waits for ever: lower a budget", _lower(program, highest, column.asked - column.granted),
            {"expected": column.granted, "found": column.asked, "entry": entry, "column": column.column},
        )  # fmt: skip
        return


def _lower(program: Program, highest: Role, excess: int) -> tuple[Fix, ...]:
    """Take the excess from the roles that share the highest budget."""
    sharing = [r for r in program.roles.values() if r.regs == highest.regs and "regs" in r.spans]
    warps = sum(r.warps // 4 for r in sharing)
    fits = ((highest.regs or 0) - -(-excess // max(1, warps))) // 8 * 8
    if fits < 24:
        return ()
    return (Fix(tuple(Edit(r.spans["regs"], str(fits)) for r in sharing), "likely", f"take {fits} registers"),)


def _accumulators(program: Program) -> Iterator[Fault]:
    entry = entry_registers(program)
    for site in sites(program).ops:
        acc = site.op.operands.get("acc")
        if site.op.attrs.get("kind") != "wgmma" or not isinstance(acc, Expr) or not isinstance(acc.type, FragT):
            continue
        held = acc.type.cols // (4 if acc.type.dtype == "f16" else 2)
        needed = MMA_N256_LAUNCH if held == 128 else held + 8
        if entry < needed:
            span = site.op.spans.get("acc", site.op.span)
            yield Fault(
                "H006", f"an accumulator of {acc.type.cols} columns needs {needed} registers a thread at launch, {program.threads} threads start with {entry}", span, (),
                "use fewer threads or a narrower tile; a later raise by `regs` does not count", (), {"expected": needed, "found": entry, "threads": program.threads},
            )  # fmt: skip
            return
