"""H008: tensor-memory regions inside the columns and lanes there are."""

from __future__ import annotations

from collections.abc import Iterator

from cake_ir.dtypes import DTYPES
from cake_ir.fault import Edit, Fault, Fix
from cake_ir.program import Program, Tmem
from cake_ir.targets import target
from cake_verify.rule import Page
from cake_verify.rules.examples import TENSOR_MEMORY, edit

PAGE = Page(
    code="H008",
    title="a region outside tensor memory",
    statement="A region starts at column `cols`, is `width` 32-bit columns wide and ends at column 512 or before; it holds its shape: at most 128 lanes, and columns enough "
    "for the elements of a row.",
    why="An allocation of more than 512 columns never returns. Columns beyond the width belong to somebody else.",
    failing=edit(TENSOR_MEMORY, ("cols=0, width=128", "cols=448, width=128")),
    passing=TENSOR_MEMORY,
    limits="All regions of a block share one allocation, the next power of two of at least 32 columns above the highest one.",
    sources=("HW080", "HW084"),
)


def check(program: Program) -> Iterator[Fault]:
    if not program.target or not target(program.target).tmem_columns:
        return
    t = target(program.target)
    for d in program.tmems.values():
        fault = _problem(d, t.tmem_columns, t.tmem_lanes)
        if fault:
            yield fault
    allocated = max((_power(d.col + d.width) for d in program.tmems.values()), default=0)
    if allocated <= t.tmem_columns < allocated * program.launch.ctas_per_sm:
        first = next(iter(program.tmems.values()))
        span = program.launch.spans.get("ctas_per_sm", program.launch.span)
        yield Fault("H008", f"{program.launch.ctas_per_sm} blocks an SM would allocate {allocated} columns each, an SM has {t.tmem_columns}", span, ((first.span, "allocated here"),),
                    "a block that finds no columns waits for another to end", (), {"expected": t.tmem_columns, "found": allocated * program.launch.ctas_per_sm})  # fmt: skip


def _power(columns: int) -> int:
    """The size of the allocation that reaches column `columns`."""
    return max(32, 1 << (columns - 1).bit_length())


def _problem(d: Tmem, columns: int, lanes: int) -> Fault | None:
    span = d.spans.get("width", d.span)
    if d.col + d.width > columns:
        return Fault("H008", f"`{d.name}` ends at column {d.col + d.width}, tensor memory has {columns}", span, facts={"expected": columns, "found": d.col + d.width})
    if d.shape[0] > lanes:
        return Fault("H008", f"`{d.name}` has {d.shape[0]} lanes, tensor memory has {lanes}", d.spans.get("shape", d.span), facts={"expected": lanes, "found": d.shape[0]})
    needed = -(-d.shape[1] * DTYPES[d.dtype].container_bits // 32)
    if needed > d.width:
        return Fault("H008", f"{d.shape[1]} elements of {d.dtype} take {needed} columns, `{d.name}` is {d.width} wide", span, fixes=(Fix((Edit(span, str(needed)),), "likely", f"{needed} columns"),),
                     facts={"expected": needed, "found": d.width})  # fmt: skip
    return None
