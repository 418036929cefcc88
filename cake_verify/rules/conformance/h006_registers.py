"""H006: register budgets that the hardware can hand out."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.registers import COLUMNS, entry_registers, pool_columns, wgmma_registers
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
    "most what these warps started with, and `ctas_per_sm` blocks have at most the threads of an SM. A wgmma needs the registers of its 64 rows of accumulator and 26 more "
    "(30 with A in registers) at launch and in its role's budget: 154 for 256 columns of f32.",
    why="setmaxnreg is executed by whole warpgroups and takes registers from a pool per SM sub-partition: a raise that the pool cannot serve blocks for ever (40 + 232 + 232 "
    "fits 384 threads, 40 + 232 + 240 hangs). An accumulator larger than the launch value does not compile, whatever a role raises later (remark C7602). A budget smaller than "
    "the MMA needs is ignored (C7507), and so are all where the blocks asked for have more threads than an SM (C7508): the pool is then not what the others count on.",
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
        threads = list(_threads(program))
        yield from ranges
        yield from threads
        yield from _warpgroups(program)
        if threads:
            return  # what a thread starts with follows from it
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
    """MMAs that the launch value, or their role's budget, does not hold: the assembler refuses the first and ignores the second."""
    entry = entry_registers(program)
    budgets: set[str] = set()
    for site in sites(program).of("mma"):
        acc, a = site.op.operands.get("acc"), site.op.operands.get("a")
        if site.op.attrs.get("kind") != "wgmma" or not isinstance(acc, Expr) or not isinstance(acc.type, FragT):
            continue
        needed, role = wgmma_registers(acc.type, a.type if isinstance(a, Expr) else None), site.role
        if entry < needed:
            span = site.op.spans.get("acc", site.op.span)
            yield Fault(
                "H006", f"an accumulator of {acc.type.cols} columns needs {needed} registers a thread at launch, {program.threads} threads start with {entry}", span, (),
                "use fewer threads or a narrower tile; a later raise by `regs` does not count", (), {"expected": needed, "found": entry, "threads": program.threads},
            )  # fmt: skip
            return
        if role.regs is not None and role.regs < needed and role.name not in budgets and target(program.target).has("SETMAXNREG"):
            budgets.add(role.name)
            up = -(-needed // 8) * 8
            span = role.spans.get("regs", role.span)
            fixes = (Fix((Edit(span, str(up)),), "likely", f"take {up} registers"),) if _fits(program, role, up) else ()
            yield Fault(
                "H006", f"`{role.name}` asks for {role.regs} registers a thread, its accumulator of {acc.type.cols} columns needs {needed}", span, ((site.op.span, "held here"),),
                "the assembler ignores the budget, and the others wait for registers that were never given back", fixes, {"expected": needed, "found": role.regs, "role": role.name},
            )  # fmt: skip


def _fits(program: Program, role: Role, regs: int) -> bool:
    """Whether the pools hold if every warp of `role` takes `regs`."""
    more = regs - (role.regs or 0)
    mine = [sum(w % COLUMNS == c for w in range(role.warp_lo, role.warp_hi)) for c in range(COLUMNS)]
    return all(column.asked + more * mine[column.column] <= column.granted for column in pool_columns(program))


def _threads(program: Program) -> Iterator[Fault]:
    """Blocks an SM whose threads an SM does not have: the assembler then drops the bound, and with it every budget."""
    t, asked = target(program.target), program.launch.ctas_per_sm
    if asked * program.threads <= t.threads_per_sm:
        return
    fits = t.threads_per_sm // program.threads
    span = program.launch.spans.get("ctas_per_sm", program.launch.span)
    yield Fault("H006", f"{asked} blocks of {program.threads} threads are {asked * program.threads:,} threads, an SM has {t.threads_per_sm:,}: every register budget would be ignored", span,
                tuple((r.spans["regs"], f"`{r.name}` has a budget") for r in program.roles.values() if "regs" in r.spans and r.regs is not None)[:2],
                f"ask for {fits} blocks", (Fix((Edit(span, str(fits)),), "likely", f"ask for {fits}"),) if fits else (), {"expected": fits, "found": asked})  # fmt: skip
