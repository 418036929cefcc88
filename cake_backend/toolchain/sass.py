"""Counts read off the machine code, where a disassembler is installed: what each loop issues, and the largest register used.

The assembler's report says what it allocated; only the machine code says what it emitted, for example a device-wide memory
barrier in the hot loop, or a wait after every MMA.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cake_backend.toolchain.flow import Block, natural_loops, split_blocks

_FUNCTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_LABEL = re.compile(r"^\s*(\.L_[\w$.]+):")
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*)")
_LINE = re.compile(r'//## File "[^"]*", line (\d+)')
_REGISTER = re.compile(r"\bR(\d+)\b")
WGMMA = ("HGMMA", "QGMMA", "IGMMA", "BGMMA")
"""Opcodes of asynchronous MMAs: of 16-bit and tf32 values, 8-bit floats, integers, bits."""
_MMA_SHAPE = re.compile(rf"(?:{'|'.join(WGMMA)})\.(\d+x\d+x\d+)")

# What is counted, by the name it gets in a report: a prefix of the opcode, or a pattern where a prefix does not say it.
COUNTED: dict[str, re.Pattern[str]] = {
    "HGMMA": re.compile(rf"(?:{'|'.join(WGMMA)})\b"),
    "HMMA": re.compile(r"(?:HMMA|IMMA|QMMA|DMMA)\b"),
    "WARPGROUP.DEPBAR": re.compile(r"WARPGROUP\.DEPBAR\b"),
    "WARPGROUP.ARRIVE": re.compile(r"WARPGROUP\.ARRIVE\b"),
    "UTMALDG": re.compile(r"UTMALDG\b"),
    "UTMASTG": re.compile(r"UTMASTG\b"),
    "MEMBAR.GPU": re.compile(r"MEMBAR\.\w+\.(?:GPU|SYS)\b"),
    "BAR": re.compile(r"BAR\b"),
    "SYNCS": re.compile(r"SYNCS\b"),
    "LDL": re.compile(r"LDL\b"),
    "STL": re.compile(r"STL\b"),
    "LDG": re.compile(r"LDG\b"),
    "STG": re.compile(r"STG\b"),
    "LDS": re.compile(r"LDSM?\b"),
    "STS": re.compile(r"STSM?\b"),
    "LDGSTS": re.compile(r"LDGSTS\b"),
}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction: its opcode with modifiers, the predicate in front of it, operands as text, and the generated line."""

    opcode: str
    predicate: str | None
    operands: str
    line: int | None


@dataclass(frozen=True, slots=True)
class LoopReport:
    """One natural loop: nesting depth from 1, instruction count, `COUNTED` classes, whole opcode mix, and the lines it spans.

    Code that cannot reach the loop's end again, such as the report of a hang before its trap, is not part of the loop.
    """

    depth: int
    innermost: bool
    instructions: int
    counts: dict[str, int]
    mix: dict[str, int]
    lines: tuple[int, int] | None

    @property
    def mmas(self) -> int:
        """Tensor-core instructions, synchronous and asynchronous."""
        return self.counts.get("HGMMA", 0) + self.counts.get("HMMA", 0)

    def to_json(self) -> dict[str, Any]:
        return {f: getattr(self, f) for f in self.__slots__}


@dataclass(frozen=True, slots=True)
class SassReport:
    """What one kernel's machine code holds; `mma_shapes` counts its asynchronous MMAs by shape ("64x256x16")."""

    entry: str
    instructions: int
    largest_register: int
    counts: dict[str, int]
    loops: tuple[LoopReport, ...]
    mma_shapes: dict[str, int] = field(default_factory=dict)

    def hot_loop(self) -> LoopReport | None:
        """The most deeply nested loop that issues MMAs (most of them at equal depth), or None where no loop does."""
        with_mma = [loop for loop in self.loops if loop.mmas]
        return max(with_mma, key=lambda loop: (loop.depth, loop.mmas), default=None)

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {f: getattr(self, f) for f in self.__slots__ if f != "loops"}
        out["loops"] = [loop.to_json() for loop in self.loops]
        return out


def find_disassembler() -> str | None:
    """`nvdisasm` on the path, from its wheel, or from a toolkit; None where there is none."""
    if found := shutil.which("nvdisasm"):
        return found
    places = [Path(p) / "nvidia" / cu / "bin" for p in sys.path for cu in ("cu13", "cu12", "cuda_nvdisasm")]
    places += [Path(os.environ[v]) / "bin" for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    places.append(Path("/usr/local/cuda/bin"))
    for place in places:
        tool = place / "nvdisasm"
        if os.access(tool, os.X_OK):
            return str(tool)
    return None


def read_sass(cubin: bytes, *, timeout: float = 30.0) -> dict[str, SassReport] | None:
    """Reports by kernel, or None where no disassembler is installed or it could not read this cubin in time."""
    text = disassembly(cubin, "-g", timeout=timeout)  # the source line in front of the instructions it belongs to
    return parse_sass(text) if text is not None else None


def disassembly(cubin: bytes, option: str, *, timeout: float = 30.0) -> str | None:
    """The code of a cubin as `nvdisasm` prints it with one more option; None as `read_sass`."""
    tool = find_disassembler()
    if tool is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as f:
        f.write(cubin)
        f.flush()
        try:
            done = subprocess.run([tool, "-c", option, f.name], capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return None
    return done.stdout if done.returncode == 0 else None


def parse_sass(text: str) -> dict[str, SassReport]:
    """Reports by kernel from the disassembler's text."""
    reports: dict[str, SassReport] = {}
    name: str | None = None
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    line: int | None = None

    def close() -> None:
        if name is not None and code:
            reports[name] = _report(name, list(code), dict(labels))

    for text_line in text.splitlines():
        if m := _FUNCTION.match(text_line):
            close()
            name, line = m[1], None
            code.clear()
            labels.clear()
        elif m := _LABEL.match(text_line):
            labels[m[1]] = len(code)
        elif m := _LINE.search(text_line):
            line = int(m[1])
        elif m := _INSTRUCTION.match(text_line):
            code.append(Instruction(m[3], m[2], m[4].strip(), line))
    close()
    return reports


def count_classes(code: list[Instruction]) -> dict[str, int]:
    """How many instructions fall in each class of `COUNTED`; classes with none are left out."""
    found: Counter[str] = Counter()
    for instruction in code:
        for name, pattern in COUNTED.items():
            if pattern.match(instruction.opcode):
                found[name] += 1
    return dict(found)


def _report(name: str, code: list[Instruction], labels: dict[str, int]) -> SassReport:
    blocks = split_blocks([(i.opcode, i.predicate, i.operands) for i in code], labels)
    loops = natural_loops(blocks)
    registers = [int(r) for i in code for r in _REGISTER.findall(i.operands)]
    reports = []
    for header, members in loops.items():
        depth = sum(1 for other in loops.values() if header in other and members <= other)
        inner = not any(other < members for other in loops.values())
        reports.append(_loop(code, [blocks[b] for b in sorted(members)], depth, inner))
    return SassReport(
        entry=name,
        instructions=len(code),
        largest_register=max(registers, default=-1),
        counts=count_classes(code),
        loops=tuple(reports),
        mma_shapes=dict(Counter(m[1] for i in code if (m := _MMA_SHAPE.match(i.opcode)))),
    )


def _loop(code: list[Instruction], blocks: list[Block], depth: int, innermost: bool) -> LoopReport:
    body = [i for b in blocks for i in code[b.start : b.end]]
    lines = [i.line for i in body if i.line is not None]
    mix = Counter(i.opcode.split(".")[0] for i in body)
    return LoopReport(
        depth=depth,
        innermost=innermost,
        instructions=len(body),
        counts=count_classes(body),
        mix=dict(mix.most_common()),
        lines=(min(lines), max(lines)) if lines else None,
    )
