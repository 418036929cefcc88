"""Findings from the compile report: what the assembler did that the schedule does not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cake_backend.cost.compiled import compiled
from cake_backend.diagnose.finding import Finding, Gain
from cake_backend.diagnose.what_if import WhatIf
from cake_ir.program import Program

# What the assembler's remarks on asynchronous MMAs mean in terms of the schedule.
_SERIAL: dict[str, str] = {
    "C7510": "keep what the accumulator needs out of calls",
    "C7511": "do not touch the accumulator between the MMA and its wait",
    "C7512": "make the list of groups in flight the same on both arms of the branch, or peel the conditional step",
    "C7513": "rebind operand registers only after the wait that retires their group",
    "C7514": "read or write accumulator registers only after `lm.mma_wait`; take results over before the next wait",
    "C7515": "read or write accumulator registers only after `lm.mma_wait`",
    "C7517": "let no branch add or retire groups: peel the first or last step",
    "C7519": "give `init=` a condition instead of putting the MMA under a branch",
}


_BUDGET: dict[str, str] = {
    "C7507": "ask for at least what the role's MMAs need: 26 registers more than their accumulator",
    "C7508": "ask for blocks an SM that its threads allow",
}
"""Register budgets that the assembler dropped, and what to change."""


def _budget(remark: Mapping[str, Any], program: Program | None) -> Finding:
    return Finding("B16", f"the assembler ignores a register budget{_of(program)}: roles that raise theirs may wait for ever", "candidate", _BUDGET[str(remark.get("code"))],
                   "a build without the remark", line=remark.get("line"), numbers={"code": remark.get("code"), "text": remark.get("text")}, basis=("compiled",), certain=True)  # fmt: skip


def compile_findings(record: Mapping[str, Any], program: Program | None, what_if: WhatIf | None) -> list[Finding]:
    """Serialised groups, spills, fences; nothing where there was no compilation."""
    section = record.get("compile")
    report = compiled(section)
    if report is None or not isinstance(section, Mapping):
        return []
    remarks = [r for r in section.get("remarks") or () if isinstance(r, dict)]
    out: list[Finding] = []
    serial = [r for r in remarks if r.get("serialises")]
    if serial:
        first = serial[0]
        code = str(first.get("code"))
        known = what_if.without_evidence(serialised=False) if what_if else None
        gain = Gain(known, "re-simulation with groups kept in flight") if known else None
        out.append(Finding("B14", f"the assembler runs the MMA groups{_of(program)} one at a time ({', '.join(dict.fromkeys(str(r.get('code')) for r in serial))})",
                           "candidate" if code in _SERIAL else "lowering", _SERIAL.get(code, "see the remark; an edit that keeps the same groups in flight on every path helps"),
                           "a build without the remark takes the same cycles", line=first.get("line"),
                           numbers={"remarks": len(serial), "text": first.get("text")}, basis=("compiled",), gain=gain, certain=True))  # fmt: skip
    if report.spilled:
        line = next((r.get("line") for r in remarks if r.get("code") in ("spill", "sass-local") and r.get("line")), None)
        role = _tightest(program)
        resources = section.get("resources") or {}
        out.append(Finding("B15", f"{report.spilled} bytes of registers are spilled to local memory{_of(program)}", "candidate",
                           "hold fewer live values: a narrower accumulator, more members, or a larger `regs=`" + (f" for `{role}`" if role else ""),
                           "the machine code has no local accesses inside a loop", line=line, role=role,
                           numbers={"spill stores": resources.get("spill_stores"), "spill loads": resources.get("spill_loads"), "registers": report.registers},
                           basis=("compiled",), absent=("what the spills cost: no constant for it",), certain=True))  # fmt: skip
    out += [_budget(r, program) for r in remarks if r.get("code") in _BUDGET][:1]
    if report.fences:
        ordered = [op.span.line for op in program.ops if op.attrs.get("order") == "cluster"] if program is not None else []
        gain = Gain(what_if.without_evidence(fences=False), "re-simulation without the fence") if what_if else None
        out.append(Finding("B13", f"a device-wide memory barrier stands in the hot loop{_of(program)}", "candidate" if ordered else "lowering",
                           'drop `order="cluster"`: a slot that only MMAs read needs no generic fence' if ordered else "nothing in the schedule asks for it: report the build",
                           "the loop's machine code holds no MEMBAR.GPU and the cycles stay", line=ordered[0] if ordered else report.lines.get("sass-membar"),
                           numbers={"remarks": sum(r.get("code") == "sass-membar" for r in remarks)}, basis=("compiled",), gain=gain, certain=True))  # fmt: skip
    return out


def fence_by_text(program: Program, what_if: WhatIf | None) -> list[Finding]:
    """The same fence, foreseen from the text where nothing was compiled."""
    line = next((op.span.line for op in program.ops if op.attrs.get("order") == "cluster"), None)
    if line is None:
        return []
    gain = Gain(what_if.with_pieces(lambda d, p: replace(p, order=None)), "re-simulation without the fence") if what_if else None
    return [Finding("B13", f'`order="cluster"` at line {line} makes the assembler put a device-wide memory barrier behind every release', "candidate",
                    "drop it where the slot is read by MMAs only, or released within one block", "the machine code of the loop has no MEMBAR.GPU", line=line,
                    numbers={"measured elsewhere": "1.26x on a GEMM, 1.17x on k-means"}, basis=("predicted",), gain=gain,
                    absent=("machine code",))]  # fmt: skip


def _of(program: Program | None) -> str:
    return f" of `{program.name}`" if program is not None else ""


def _tightest(program: Program | None) -> str | None:
    """The role with the smallest register budget, where one is given."""
    if program is None:
        return None
    budgets = {r.name: r.regs for r in program.roles.values() if r.regs is not None}
    return min(budgets, key=lambda name: budgets[name], default=None)
