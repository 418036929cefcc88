"""Where the warps of a hot loop wait, from a profiler's samples: `python -m bench.stalls SOURCE.csv [--least 1.0]`.

SOURCE.csv is what `ncu --import FILE --page source --csv` prints, one listing a kernel (see `bench.profile`). The hot loop is the stretch around the HGMMA
instructions that were executed most often. Printed for each kernel: the share of each stall reason in the loop, then the loop itself, with
every tensor-core, barrier and shuffle instruction and all that hold at least `--least` percent of the loop's samples on lines of their own.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cake_backend.toolchain.sass import WGMMA

MARKS = (*WGMMA, "BAR", "WARPGROUP", "SYNCS", "SHFL")
NEAR = 0.9  # of the executions of the hottest HGMMA: code that is executed so often belongs to the loop


@dataclass(frozen=True, slots=True)
class Sampled:
    """One machine instruction: its text, how often it was executed, samples in all and by stall reason."""

    text: str
    executed: int
    samples: int
    reasons: dict[str, int]

    @property
    def opcode(self) -> str:
        return re.sub(r"^@!?U?P\w+\s+", "", self.text).split()[0]


def read(path: Path) -> list[tuple[str, list[Sampled]]]:
    """Kernels with their instructions, in the order of the file."""
    kernels: list[tuple[str, list[Sampled]]] = []
    header: dict[str, int] = {}
    for row in csv.reader(path.read_text().splitlines()):
        if row[:1] == ["Kernel Name"]:
            kernels.append((row[1], []))
        elif row[:1] == ["Address"]:
            header = {name: i for i, name in enumerate(row)}
        elif kernels and header and len(row) >= len(header):
            reasons = {n[len("stall_") :]: _number(row[i]) for n, i in header.items() if n.startswith("stall_") and "Not Issued" not in n}
            kernels[-1][1].append(Sampled(row[header["Source"]].strip(), _number(row[header["Instructions Executed"]]), _number(row[header["# Samples"]]), reasons))
    return kernels


def _number(text: str) -> int:
    digits = text.replace(",", "")
    return int(digits) if digits.isdigit() else 0


def hot_loop(code: list[Sampled]) -> list[Sampled]:
    """The stretch of code around the hottest HGMMA that is executed as often; empty without one."""
    most = max((i.executed for i in code if i.opcode.startswith(WGMMA)), default=0)
    if not most:
        return []
    hot = [n for n, i in enumerate(code) if i.opcode.startswith(WGMMA) and i.executed == most]
    first, last = hot[0], hot[-1]
    while first > 0 and code[first - 1].executed >= NEAR * most:
        first -= 1
    while last + 1 < len(code) and code[last + 1].executed >= NEAR * most:
        last += 1
    return code[first : last + 1]


def report(name: str, code: list[Sampled], least: float) -> list[str]:
    """Lines for one kernel."""
    loop = hot_loop(code)
    total, here = sum(i.samples for i in code), sum(i.samples for i in loop)
    if not here:
        return [f"{name[:80]}: no samples in a loop with HGMMA"]
    reasons: Counter[str] = Counter()
    for i in loop:
        reasons.update(i.reasons)
    lines = [f"{name[:80]}: {total} samples, {100 * here / total:.0f} % in a loop of {len(loop)} instructions",
             "  " + ", ".join(f"{n} {100 * v / here:.1f} %" for n, v in reasons.most_common() if v >= here / 100)]  # fmt: skip
    between: list[Sampled] = []
    for i in [*loop, None]:
        apart = i is None or i.opcode.startswith(MARKS) or 100 * i.samples >= least * here
        if apart and between:
            kinds = Counter(b.opcode.split(".")[0] for b in between)
            lines.append(f"  {100 * sum(b.samples for b in between) / here:5.1f} %    {' '.join(f'{k} {v}' for k, v in kinds.most_common(6))}")
            between = []
        if i is None:
            break
        if apart:
            top = [f"{n} {100 * v / here:.1f}" for n, v in Counter(i.reasons).most_common(2) if v >= here / 500]
            lines.append(f"  {100 * i.samples / here:5.1f} %  {i.text[:70]:70s} {', '.join(top)}")
        else:
            between.append(i)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--least", type=float, default=1.0)
    arguments = parser.parse_args()
    for name, code in read(arguments.source):
        print("\n".join(report(name, code, arguments.least)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
