"""What an ordinary pass of the hot loop executes: `python -m bench.ordinary FOLDER [NAME ...]` (no GPU needed, but a disassembler).

FOLDER is what `bench.build` wrote. Every forward branch inside the loop is taken, which leaves out what stands behind votes that seldom find anything and the polls of
waits that are over. Printed: instructions, and the sum of the stall cycles that the assembler has written into them: how long a warp takes that is alone and never waits for a result.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cake_backend.toolchain.sass import COUNTED, disassembly

_LABEL = re.compile(r"^\s*(\.L_[\w$.]+):")
_LINE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;?\s*/\* 0x([0-9a-f]+) \*/")
_SECOND = re.compile(r"/\* 0x([0-9a-f]+) \*/")
_PRODUCT = COUNTED["HGMMA"]
_TARGET = re.compile(r"\.L_[\w$.]+")
STALL_BITS = 41  # of the second word: four bits of stall count, the yield flag, two barriers to set and six to wait for follow


@dataclass(frozen=True, slots=True)
class Placed:
    """One instruction: its text, its place among all, and the cycles before the warp's next one."""

    text: str
    at: int
    stall: int

    @property
    def target(self) -> str | None:
        """The label that a branch goes to."""
        found = _TARGET.search(self.text) if "BRA" in self.text else None
        return found[0] if found else None


def listing(text: str) -> tuple[list[Placed], dict[str, int]]:
    """Instructions of `nvdisasm -c -hex`, and what place each label stands in front of."""
    code: list[Placed] = []
    labels: dict[str, int] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines[:-1]):
        if label := _LABEL.match(line):
            labels[label[1]] = len(code)
        elif (found := _LINE.match(line)) and (second := _SECOND.search(lines[number + 1])):
            code.append(Placed(found[1], len(code), int(second[1], 16) >> STALL_BITS & 0xF))
    return code, labels


def ordinary_pass(code: list[Placed], labels: dict[str, int]) -> list[Placed]:
    """The loop with the most tensor-core instructions, all of its forward branches taken; empty where there is none."""
    loops = [(labels[i.target], i.at) for i in code if i.target in labels and labels[i.target] <= i.at]

    def products(loop: tuple[int, int]) -> tuple[int, int]:
        inside = code[loop[0] : loop[1] + 1]
        nested = any(loop[0] <= other[0] and other[1] < loop[1] and any(_PRODUCT.search(i.text) for i in code[other[0] : other[1]]) for other in loops)
        return (0 if nested else sum(_PRODUCT.search(i.text) is not None for i in inside)), -len(inside)

    if not loops or not products(best := max(loops, key=products))[0]:
        return []
    return list(_follow(code, labels, *best))


def _follow(code: list[Placed], labels: dict[str, int], first: int, last: int) -> Iterator[Placed]:
    at = first
    while at <= last:
        here = code[at]
        yield here
        goal = labels.get(here.target or "", -1)
        at = goal if at < goal <= last else at + 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    print("| candidate | instructions | stall cycles |\n|---|---|---|")
    for record in sorted(arguments.folder.glob("*/build.json")):
        name = json.loads(record.read_text())["name"]
        if not arguments.names or name in arguments.names:
            text = disassembly((record.parent / "kernel.cubin").read_bytes(), "-hex", timeout=60)
            if text is None:
                print("no disassembler, or it cannot read this: install nvidia-cuda-nvdisasm or a CUDA toolkit", file=sys.stderr)
                return 1
            done = ordinary_pass(*listing(text))
            print(f"| `{name}` | {len(done)} | {sum(i.stall for i in done)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
