"""H007: a block, a grid and parameters of a size that the target launches."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_ir.targets import target
from cake_verify.analyses import ranges
from cake_verify.analyses.sites import sites
from cake_verify.rule import Page
from cake_verify.rules.examples import COPY, edit

PAGE = Page(
    code="H007",
    title="too many threads, blocks or parameters",
    statement="The warps of all roles make one block of at most 1,024 threads, and tile counts known at compile time a grid of at most 2,147,483,647 blocks. "
    "The kernel's parameters take at most 32,764 bytes, of which each tensor map takes 128.",
    why="A larger block or grid assembles and is refused at launch; parameters beyond the limit do not assemble.",
    failing=edit(COPY, ("range(0, 4)", "range(30, 34)")),
    passing=COPY,
    limits="Warps below the highest one that no role has are launched too, and idle. Counted are one map or one pointer a tensor that is used; extents and strides come on top, "
    "and a view of several shapes takes several maps. Drivers older than CUDA 12.1 take 4,096 bytes.",
    sources=("HW002", "HW003"),
)

MOST_BLOCKS = 2**31 - 1
MAP_BYTES = 128
"""A tensor map as a kernel parameter."""


def check(program: Program) -> Iterator[Fault]:
    if not program.target:
        return
    t = target(program.target)
    if program.threads > t.max_threads:
        last = max(program.roles.values(), key=lambda r: r.warp_hi)
        yield Fault("H007", f"`{last.name}` ends at warp {last.warp_hi - 1}: a block of {program.threads} threads, {t.name} launches at most {t.max_threads}",
                    last.spans.get("warps", last.span), (), f"number the warps below {t.max_threads // 32}", (), {"expected": t.max_threads, "found": program.threads})  # fmt: skip
    for s in program.schedulers.values():
        if s.kind != "grid":
            continue
        counts = [ranges.of(program, None, e).exact for e in s.tiles]
        blocks = prod(c for c in counts if c is not None)
        if blocks > MOST_BLOCKS:
            yield Fault("H007", f"`{s.name}` makes a grid of at least {blocks:,} blocks, a launch has at most {MOST_BLOCKS:,}", s.spans.get("tiles", s.span), (),
                        "use larger tiles, or a persistent grid", (), {"expected": MOST_BLOCKS, "found": blocks})  # fmt: skip
    yield from _parameters(program, t.param_bytes)


def _parameters(program: Program, most: int) -> Iterator[Fault]:
    """The least that the parameters of the tensors in use can take."""
    if len(program.params) * MAP_BYTES <= most:  # as mostly: all of them together are few enough
        return
    used = {str(s.op.attrs["tensor"]) for s in sites(program).ops if s.op.attrs.get("tensor") is not None}
    sizes = [(p, MAP_BYTES if p.kind == "tma" else 8) for p in program.params if p.name in used]
    total = sum(size for _, size in sizes)
    if total > most:
        maps = sum(size == MAP_BYTES for _, size in sizes)
        yield Fault("H007", f"the kernel's parameters take at least {total:,} bytes, {maps} tensor maps of {MAP_BYTES} among them; a launch passes at most {most:,}", sizes[-1][0].span, (),
                    "put tensors of one shape into one tensor with a batch axis", (), {"expected": most, "found": total})  # fmt: skip
