"""H007: a block of a size that the target launches."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_ir.targets import target
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="H007",
    title="too many threads",
    statement="The warps of all roles make one block of at most 1,024 threads.",
    why="A larger block assembles and is refused at launch.",
    failing=edit(COPY, ("range(0, 4)", "range(30, 34)")),
    passing=COPY,
    limits="Warps below the highest one that no role has are launched too, and idle.",
    sources=("HW002",),
)


def check(program: Program) -> Iterator[Fault]:
    if not program.target:
        return
    t = target(program.target)
    if program.threads > t.max_threads:
        last = max(program.roles.values(), key=lambda r: r.warp_hi)
        yield Fault("H007", f"`{last.name}` ends at warp {last.warp_hi - 1}: a block of {program.threads} threads, {t.name} launches at most {t.max_threads}",
                    last.spans.get("warps", last.span), (), f"number the warps below {t.max_threads // 32}", (), {"expected": t.max_threads, "found": program.threads})  # fmt: skip
