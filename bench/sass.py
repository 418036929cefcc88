"""What the machine code of a schedule holds, loop by loop, against what the schedule asks for: `python -m bench.sass [FAMILY ...]`.

From the program: for each innermost run-time loop of a role, how many tensor-core instructions, copies by TMA and waits for MMA groups one pass
has. From the cubin: what the loops of the machine code hold. A loop of the schedule must be found again (once, or unrolled or peeled by a
whole number), and nothing may stand in a loop that the schedule did not ask for: local memory, a device-wide barrier, a hardware barrier
where nothing meets, a wait for groups behind every MMA. Without a disassembler (a wheel, or a toolkit) it says so and fails.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from typing import Any

import cake_kernels
from bench.candidates import CANDIDATES, BenchCandidate
from bench.figures import headlines
from cake_backend.cuda.resources import layout_of
from cake_backend.judge.building import build_routine
from cake_backend.judge.source import read_source
from cake_backend.toolchain.sass import SassReport, find_disassembler, read_sass
from cake_ir.boxes import tma_boxes
from cake_ir.derive.clusters import axis_of
from cake_ir.derive.named_ids import named_ids
from cake_ir.derive.structure import Site, sites
from cake_ir.ops.mma import instruction_k
from cake_ir.program import Expr, For, Op, Program
from cake_ir.types import FragT, ViewT

MOST_COPIES = 16
"""How often a loop's body may stand in the machine code: unrolled, or with rounds peeled."""


@dataclass(slots=True)
class Asked:
    """One run-time loop of the schedule (or what a role has in all, 0): its line, and instructions a pass by class, those of inner loops once."""

    role: str
    line: int
    innermost: bool = True
    counts: Counter[str] = field(default_factory=Counter)


def asked(program: Program) -> list[Asked]:
    """What each run-time loop of each role asks for, in text order; loops without anything counted are left out."""
    found: dict[tuple[str, int], Asked] = {}
    for site in sites(program):
        around = [s.head.line for s in site.loops if s.kind != "static" and not (s.kind == "tiles" and program.launch.grid == "tiles")]  # one tile a CTA is no loop
        trips = prod(_trips(s) for s in site.loops if s.kind == "static")
        counts = instructions(program, site)
        for depth, line in enumerate((0, *around)):
            entry = found.setdefault((site.role, line), Asked(site.role, line))
            entry.innermost = entry.innermost and depth == len(around)
            for name, count in counts.items():
                entry.counts[name] += count * trips
    return [a for a in found.values() if a.counts]


def _trips(s: For) -> int:
    lo, hi = (e.attrs["value"] if isinstance(e, Expr) and e.op == "const" else 0 for e in (s.lo, s.hi))
    return max(1, int(hi) - int(lo))  # type: ignore[call-overload]  # the bounds of a static range are ints


def instructions(program: Program, site: Site) -> dict[str, int]:
    """Machine instructions of one execution of an operation, for the classes that are checked."""
    op = site.op
    if op.name == "mma":
        return _products(program, site.role, op)
    if op.name == "mma_wait" and any(s.op.name == "mma" and s.op.attrs.get("kind") == "wgmma" for s in sites(program)):
        return {"WARPGROUP.DEPBAR": 1}
    if op.name == "tma_load":
        return {"UTMALDG": _boxes(program, op)}
    return {"BAR": 1} if meets(program, site) == "asked" else {}


def meets(program: Program, site: Site) -> str:
    """Whether threads meet at a hardware barrier there: `asked` by a statement of its own, `derived` by lowering, or not (empty)."""
    op = site.op
    name = str(op.attrs.get("sync") or op.attrs.get("barrier"))  # a reduction across warps names where they meet
    if (op.name == "sync" or op.attrs.get("sync")) and name in program.named:
        return "asked"
    if name in program.turns:
        return "asked"
    hidden = any(i.kind == "member" and i.name == site.role for i in named_ids(program))
    if hidden and (op.name in ("signal", "spin") or (op.name == "arrive" and program.barriers[name].arrive == "member")):
        return "derived"
    inside = [e for v in op.operands.values() for x in (v if isinstance(v, tuple) else (v,)) if isinstance(x, Expr) for e in x.parts()]
    return "derived" if op.name in ("cluster_sync", "sync") or any(e.attrs.get("sync") for e in inside) else ""


def _products(program: Program, role: str, op: Op) -> dict[str, int]:
    acc, a = (op.operands[n].type for n in ("acc", "a"))  # type: ignore[union-attr]  # operands of an MMA are expressions
    assert isinstance(acc, FragT) and isinstance(a, FragT | ViewT)
    deep = a.shape[1] // instruction_k(a.dtype)
    if op.attrs.get("kind") == "wgmma":
        return {"HGMMA": acc.rows // 64 * deep}
    wm, wn = acc.warps or (program.roles[role].member_warps, 1)
    return {"HMMA": acc.rows // wm // 16 * (acc.cols // wn // 8) * deep}


def _boxes(program: Program, op: Op) -> int:
    view, coords = op.operands["view"], op.operands["coords"]
    assert isinstance(view, Expr) and isinstance(view.type, ViewT) and isinstance(coords, tuple)
    t = view.type
    layout = layout_of(program.views[t.view])
    axis = op.attrs.get("multicast")
    slices = program.launch.cluster[axis_of(program, str(axis))] if axis else 1
    box = op.attrs.get("box")
    return len(tma_boxes(layout, len(coords), rows=t.rows, cols=t.cols, box=box, slices=max(1, slices)))  # type: ignore[arg-type]  # a box is a tuple of ints


def problems(program: Program, report: SassReport) -> list[str]:
    """What is missing in the machine code, or stands there unasked, as sentences."""
    out = []
    wanted = asked(program)
    for a in wanted:
        for name in ("HGMMA", "HMMA", "UTMALDG", "BAR"):
            n = a.counts.get(name, 0)
            if not n:
                continue
            held = [loop.counts.get(name, 0) for loop in report.loops] if a.line else [report.counts.get(name, 0)]
            if name == "BAR":  # one that each member has for itself stands there once a member
                if max([*held, 0 if a.innermost else report.counts.get(name, 0)]) < n:
                    out.append(f"the loop in line {a.line} of `{a.role}` meets {n} times a pass; the loops of the machine code hold {max(held, default=0)} BAR at most")
                continue
            if not any(h >= n and (h % n == 0 or not a.innermost) and h <= MOST_COPIES * n for h in held):
                out.append(f"the loop in line {a.line} of `{a.role}` asks for {n} {name} a pass; the loops of the machine code hold {sorted(set(held) - {0}) or 'none'}")
    total = Counter[str]()
    for a in wanted:
        if not a.line:
            total.update(a.counts)
    for name in ("HGMMA", "HMMA", "UTMALDG"):
        if report.counts.get(name, 0) < total[name]:
            out.append(f"the schedule has {total[name]} {name} in its text, the machine code {report.counts.get(name, 0)}: some were merged or dropped")
        if report.counts.get(name, 0) and not total[name]:
            out.append(f"{report.counts[name]} {name} that no operation asks for")
    drawn = any(s.kind == "counter" for s in program.schedulers.values())
    fenced = drawn or any(s.op.attrs.get("order") == "cluster" or s.op.name in ("signal", "spin", "atomic") for s in sites(program))
    meeting = drawn or any(meets(program, s) for s in sites(program) if any(x.kind != "static" for x in s.loops))
    for loop in report.loops:
        where = f"the loop over generated lines {loop.lines[0]} to {loop.lines[1]}" if loop.lines else "a loop"
        if local := loop.counts.get("LDL", 0) + loop.counts.get("STL", 0):
            out.append(f"{where} accesses local memory {local} times")
        if loop.counts.get("MEMBAR.GPU", 0) and not fenced:
            out.append(f"{where} has a device-wide memory barrier, the schedule asks for none")
        if loop.counts.get("BAR", 0) and not meeting:
            out.append(f"{where} has {loop.counts['BAR']} hardware barriers, and no threads meet in a loop of the schedule")
        mmas, waits = loop.counts.get("HGMMA", 0), loop.counts.get("WARPGROUP.DEPBAR", 0)
        if mmas > 1 and waits >= mmas > _fewest_mmas_a_wait(wanted):
            out.append(f"{where} waits {waits} times for {mmas} MMAs: the groups are serialised")
    return out


def _fewest_mmas_a_wait(wanted: list[Asked]) -> int:
    """Where a schedule itself waits for every MMA, as many waits as MMAs are what it asks for."""
    return max((a.counts["HGMMA"] for a in wanted if 0 < a.counts["HGMMA"] <= a.counts["WARPGROUP.DEPBAR"]), default=0)


def check(candidate: BenchCandidate) -> tuple[list[str], dict[str, Any]]:
    """Build a candidate and read its machine code; the problems and the report's totals by kernel."""
    text = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == (candidate.family, candidate.schedule))
    source = read_source(text, dict(candidate.params), target=candidate.target, task=cake_kernels.tasks()[candidate.family])
    if source.routine is None:
        return [source.summary], {}
    built = build_routine(source.routine, text, timeout=120)
    if not built.cubins:
        return [built.summary], {}
    found: list[str] = []
    totals = {}
    for program, cubin in zip(source.routine.programs, built.cubins, strict=True):
        reports = read_sass(cubin)
        if not reports:
            return ["the disassembler could not read the cubin"], {}
        (report,) = reports.values()
        found += problems(program, report)
        totals[report.entry] = {"counts": report.counts, "loops": [{"depth": x.depth, "lines": x.lines, **x.counts} for x in report.loops]}
    return found, totals


def main() -> int:
    families = sorted({c.family for c in CANDIDATES})
    parser = argparse.ArgumentParser(prog="python -m bench.sass", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"one of {', '.join(families)}; all, if none is named")
    parser.add_argument("--all", action="store_true", help="every benchmark candidate, not the headlines alone")
    arguments = parser.parse_args()
    if unknown := [f for f in arguments.families if f not in families]:
        parser.error(f"there is no family `{unknown[0]}`: {', '.join(families)}")
    if find_disassembler() is None:
        print("no disassembler: install nvidia-cuda-nvdisasm or a CUDA toolkit", file=sys.stderr)
        return 2
    bad = looked = 0
    first = {c.name for c in headlines(arguments.families)}  # one of every schedule, headline or not
    for c in CANDIDATES:
        if (arguments.families and c.family not in arguments.families) or not (c.main or arguments.all or c.name in first):
            continue
        found, totals = check(c)
        held = "; ".join(" ".join(f"{k} {v}" for k, v in t["counts"].items()) for t in totals.values())
        print(f"{c.name}: {'ok' if not found else 'PROBLEM'}; {held}", flush=True)
        for problem in found:
            print(f"  {problem}")
        bad += bool(found)
        looked += 1
    print(f"{looked} kernels, {bad} with problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
