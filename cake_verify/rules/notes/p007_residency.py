"""P007: blocks that cannot be on an SM together."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.shared_memory import shared_memory
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Program
from cake_ir.targets import target
from cake_verify.rule import Page
from cake_verify.rules.conformance.h010_named_barriers import ids
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="P007",
    title="fewer blocks an SM than asked for",
    statement="`ctas_per_sm` blocks fit the shared memory, threads and barriers of one SM.",
    why="The compiler limits every thread's registers to what that many blocks would leave; if they do not fit, the registers are given up for nothing.",
    failing=edit(COPY, ("    work =", '    lm.launch(grid="tiles", ctas_per_sm=20)\n    work =')),
    passing=edit(COPY, ("    work =", '    lm.launch(grid="tiles", ctas_per_sm=8)\n    work =')),
    limits="Registers are left to the compiler, which gives up as many as it must.",
    sources=("HW001", "HW002", "HW004"),
    severity="note",
)


def check(program: Program) -> Iterator[Fault]:
    asked = program.launch.ctas_per_sm
    if not program.target or asked == 1:
        return
    t = target(program.target)
    smem = shared_memory(program).total
    fits = t.blocks_that_fit(smem, program.threads, t.min_regs, 1 + sum(n for n, _, _ in ids(program)))
    if fits < asked:
        span = program.launch.spans.get("ctas_per_sm", program.launch.span)
        fix = (Fix((Edit(span, str(fits)),), "likely", f"ask for {fits}"),) if fits else ()
        yield Fault("P007", f"{asked} blocks an SM are asked for, {fits} fit: each takes {smem:,} bytes of shared memory and {program.threads} threads", span, (), "",
                    fix, {"expected": asked, "found": fits}, severity="note")  # fmt: skip
