"""What the machine code alone gives away, as remarks beside the assembler's own."""

from __future__ import annotations

from collections.abc import Mapping

from cake_backend.cuda.mma_count import Asked
from cake_backend.toolchain.build import Remark
from cake_backend.toolchain.sass import SassReport

MISSING_MMA = "sass-mma-missing"
"""The code of a build whose machine code holds fewer MMAs than the schedule asks for: its results would be wrong."""


def missing_mmas(report: SassReport, asked: Mapping[str, Asked]) -> tuple[Remark, ...]:
    """Errors where the machine code holds fewer asynchronous MMAs of a shape than the schedule asks for, or part of a run of them.

    The assembler merges neighbouring wgmma with equal operands and says nothing; the sum then lacks a product.
    """
    out = []
    for shape, wanted in asked.items():
        found = report.mma_shapes.get(shape, 0)
        if found >= wanted.least and found % max(1, wanted.unit) == 0:
            continue
        expected = str(wanted.least) if found < wanted.least else f"a multiple of {wanted.unit}"
        lines = sorted({span.line for span in wanted.spans})
        where = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines))}"
        text = f"the machine code of `{report.entry}` holds {found} MMAs of {shape}, the schedule asks for {expected} ({where}): the assembler dropped one, the result would be wrong"
        out.append(Remark(MISSING_MMA, text, severity="error", entry=report.entry, line=lines[0] if lines else None))
    return tuple(out)


def sass_remarks(reports: Mapping[str, SassReport], *, expected_waits: Mapping[str, int] | None = None) -> tuple[Remark, ...]:
    """Findings per kernel: serialised MMA groups, a device-wide memory barrier in the hot loop, local memory.

    `expected_waits` is the number of `mma_wait` places that the schedule has, by kernel; without it only a wait behind every
    single MMA of a loop with several is reported.
    """
    out: list[Remark] = []
    for entry, report in reports.items():
        waits, mmas = report.counts.get("WARPGROUP.DEPBAR", 0), report.counts.get("HGMMA", 0)
        expected = (expected_waits or {}).get(entry)
        if (expected is not None and waits > expected) or (expected is None and mmas > 2 and waits >= mmas):
            told = f", {expected} expected" if expected is not None else ""
            text = f"{waits} MMA waits in the machine code of `{entry}`{told}, for {mmas} MMAs: the groups run one at a time"
            out.append(Remark("sass-serialised", text, severity="warning", entry=entry, serialises=True))
        hot = report.hot_loop()
        if hot is not None and hot.counts.get("MEMBAR.GPU", 0):
            text = f"a device-wide memory barrier in the hot loop of `{entry}` ({hot.counts['MEMBAR.GPU']} per pass)"
            line = hot.lines[0] if hot.lines else None
            out.append(Remark("sass-membar", text, severity="warning", entry=entry, generated_line=line))
        local = report.counts.get("LDL", 0) + report.counts.get("STL", 0)
        if local:
            inside = sum((loop.counts.get("LDL", 0) + loop.counts.get("STL", 0)) for loop in report.loops if loop.innermost)
            text = f"{local} accesses to local memory in `{entry}`, {inside} of them in innermost loops"
            out.append(Remark("sass-local", text, severity="warning", entry=entry))
    return tuple(out)
