"""S039: accesses of global memory that nothing orders."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.fault import Fault
from cake_ir.program import Program
from cake_verify.analyses.grid_access import touched
from cake_verify.analyses.grid_cells import READ
from cake_verify.rule import Page
from cake_verify.rules.examples import edit
from cake_verify.rules.safety.texts import CHAIN

PAGE = Page(
    code="S039",
    title="accesses of global memory that nothing orders",
    statement="Where a launch writes elements of a tensor, every other access of them is ordered with the write: inside a block by a barrier or a meeting, "
    "between blocks by `lm.signal` behind the one and `lm.spin` in front of the other; a bulk store has been waited for with `read=False`, and ordinary writes are fenced before the copy engine reads them. Nothing writes a tensor that is `.const`.",
    why="Blocks run in any order and at any distance, and so do the lanes of one role: what is read is the old value or the new one, and the result changes from run to run.",
    failing=edit(CHAIN, ("                lm.spin(FLAGS, t.g - 1, 1)\n", "")),
    passing=CHAIN,
    limits="All blocks of a few small grids are walked, with coordinates as numbers. Where memory or a mask that compares no positions decides which elements are touched, what may meet is said as not decided; "
    "different entries of one table that the launch only reads, numbered by a field of the tile, are taken to name different places. Places that a running count hands out (`base + seen + lm.scan(m, \"add\") - 1` under m) lie in front of those from the count on. "
    "A row's new value that a reduction along the row gives is taken to come behind what its lanes read for that row. Updates (`lm.atomic`, `tma_reduce`) do not conflict with each other. Two parameters are taken to lie apart, unless a plan binds them to one tensor. "
    "An arrival at another block's barrier is taken to order tensors as it orders shared memory.",
    sources=("HW070",),
)


def check(program: Program) -> Iterator[Fault]:
    """Writes of tensors that are declared as read only."""
    for op, (name, kind, _) in touched(program).items():
        if kind != READ and program.tensors[name].const:
            yield Fault("S039", f"`{name}` is `.const`, and this writes it: reads of it may come from a cache that nothing keeps up to date", op.span,
                        ((program.tensors[name].span, "declared here"),), f"drop `.const` of `{name}`, or write another tensor", (), {"tensor": name})  # fmt: skip
            return
