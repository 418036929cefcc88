"""H002: the shared memory of one block fits what the target grants it."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.derive.shared_memory import shared_memory
from cake_ir.fault import Fault
from cake_ir.layout import total_bytes
from cake_ir.placement import view_layout
from cake_ir.program import Program
from cake_ir.targets import TARGETS, target
from cake_verify.rule import Page
from cake_verify.rules.examples import TILE, edit

PAGE = Page(
    code="H002",
    title="too much shared memory",
    statement="Pools, eight bytes a barrier object and what it takes to align the first pool must not exceed the opt-in shared memory of a block on the target.",
    why="A launch that asks for one byte more is refused. The limit is 166,912 bytes on sm_80, 101,376 on sm_89, sm_120a and sm_121a, and 232,448 on sm_90a, sm_100a and sm_103a.",
    failing=edit(TILE, ("lm.smem(24576)", "lm.smem(232448)")),
    passing=edit(TILE, ("lm.smem(24576)", "lm.smem(231416)")),
    limits="Co-residency of several blocks is a note (P007), not a limit.",
    sources=("HW001",),
)


def check(program: Program) -> Iterator[Fault]:
    if not program.target or not program.pools:
        return
    t = target(program.target)
    use = shared_memory(program)
    if use.total <= t.smem_optin:
        return
    pool = max(program.pools.values(), key=lambda p: p.nbytes)
    largest = sorted(program.views.values(), key=lambda v: -total_bytes(view_layout(v)))[:3]
    related = tuple((v.span, f"{total_bytes(view_layout(v)):,} bytes in {v.stages} slot{'s' if v.stages > 1 else ''}") for v in largest)
    fits = [name for name in TARGETS if target(name).smem_optin >= use.total]
    deepest = max(program.views.values(), key=lambda v: v.stages, default=None)
    help = f"take {deepest.stages - 1} stages instead of {deepest.stages}" if deepest is not None and deepest.stages > 1 else "use smaller tiles"
    yield Fault(
        "H002",
        f"a block needs {use.total:,} bytes of shared memory ({use.pools:,} in pools, {use.barriers:,} of barriers, {use.slack:,} to align), "
        f"{t.name} grants {t.smem_optin:,}",
        pool.span, related, help + (f"; it fits on {', '.join(fits)}" if fits else ""), (),
        {"expected": t.smem_optin, "found": use.total, "pools": use.pools, "barriers": use.barriers, "slack": use.slack, "target": t.name},
    )  # fmt: skip
