"""Reading the compiler's log: resources per kernel, and remarks with the line of generated code they are about."""

from __future__ import annotations

import re
from bisect import bisect_right

from cake_backend.toolchain.build import Remark, Resources

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SMEM = re.compile(r"(\d+) bytes smem")
_CODED = re.compile(r"(info|warning|error|fatal)\s*:\s*\((C7[4-9]\d\d)\)\s*(.*)")
_AROUND = re.compile(r"(?:around|instruction at) line (\d+)")
_IN_FUNCTION = re.compile(r"in (?:the )?function '?([\w$]+)'?")
_FRONT = re.compile(r"^(?P<file>[^\s(]+)\((?P<line>\d+)\): (?P<kind>catastrophic error|error|warning)(?: #[\w-]+)?: (?P<text>.*)$")
_PTXAS_ERROR = re.compile(r"^ptxas\b.*?\b(error|fatal)\s*:\s*(.*)$")
_PTXAS_WARNING = re.compile(r"^ptxas\b.*?\bwarning\s*:\s*(?!\(C)(.*)$")
_ABORTED = "Ptx assembly aborted due to errors"
_PTX_LINE = re.compile(r"\bline (\d+);")
_LOC = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)\s+\d+(?:.*?inlined_at\s+\d+\s+(\d+)\s+\d+)?")

# The assembler's codes for wgmma groups that it could not keep in flight (C7510 to C7516), and for a wait (C7517) or an arrive
# (C7519) that it put in itself, which has the same effect at one place.
_SERIALISING = re.compile(r"C751\d")


def parse_resources(log: str) -> dict[str, Resources]:
    """Resources by kernel name, from `-v` output of the assembler (device functions that are not kernels are left out)."""
    found: dict[str, Resources] = {}
    current: str | None = None
    stack = (0, 0, 0)
    for line in log.splitlines():
        if m := _ENTRY.search(line):
            current, stack = m[1], (0, 0, 0)
        elif m := _PROPERTIES.search(line):
            if m[1] != current:  # a callee: its stack is counted in the kernel's cumulative size
                stack = (0, 0, 0)
        elif m := _STACK.search(line):
            stack = (int(m[1]), int(m[2]), int(m[3]))
        elif (m := _USED.search(line)) and current is not None:
            rest = m[2]
            bars, smem = _BARRIERS.search(rest), _SMEM.search(rest)
            found[current] = Resources(
                registers=int(m[1]),
                stack=stack[0],
                spill_stores=stack[1],
                spill_loads=stack[2],
                static_smem=int(smem[1]) if smem else 0,
                barriers=int(bars[1]) if bars else 0,
            )
            current = None
    return found


class PtxLines:
    """Maps lines of PTX to lines of the CUDA C++ it came from, by the `.loc` directives (`-lineinfo`)."""

    def __init__(self, ptx: str) -> None:
        self._at: list[int] = []
        self._line: list[int] = []
        for number, text in enumerate(ptx.splitlines(), 1):
            m = _LOC.match(text)
            if m is None:
                continue
            line = int(m[2] or m[1])  # where inlined, the place of the call is the line that the schedule printed
            if line > 0:
                self._at.append(number)
                self._line.append(line)

    def source_line(self, ptx_line: int) -> int | None:
        """The CUDA line in force at a PTX line, or None before the first directive."""
        i = bisect_right(self._at, ptx_line) - 1
        return self._line[i] if i >= 0 else None


def parse_remarks(log: str, ptx: str = "") -> tuple[Remark, ...]:
    """Findings in the log, in order and without repetitions; lines that the assembler gives in PTX are mapped back."""
    lines = PtxLines(ptx)
    out: list[Remark] = []
    for text in log.splitlines():
        remark = _coded(text, lines) or _front(text) or _ptxas_error(text, lines) or _ptxas_warning(text, lines)
        if remark is not None and remark not in out and not (remark.text == _ABORTED and out):
            out.append(remark)
    for entry, res in parse_resources(log).items():
        if res.spill_stores or res.spill_loads:
            out.append(
                Remark(
                    "spill",
                    f"{res.spill_stores} bytes of spill stores and {res.spill_loads} bytes of spill loads in `{entry}`",
                    severity="warning",
                    entry=entry,
                )
            )
    return tuple(out)


def _coded(text: str, lines: PtxLines) -> Remark | None:
    m = _CODED.search(text)
    if m is None:
        return None
    code, message = m[2], " ".join(m[3].split())
    around, entry = _AROUND.search(message), _IN_FUNCTION.search(message)
    message = re.sub(r" (?:in around|at) line \d+", "", message)  # a line of the PTX, which nobody sees
    serialises = bool(_SERIALISING.fullmatch(code))
    performance = code.startswith(("C75", "C76"))
    severity = {"info": "warning" if performance else "note", "warning": "warning"}.get(m[1], "error")
    return Remark(
        code,
        message,
        severity=severity,
        entry=entry[1] if entry else None,
        generated_line=lines.source_line(int(around[1])) if around else None,
        serialises=serialises,
    )


def _front(text: str) -> Remark | None:
    m = _FRONT.match(text)
    if m is None:
        return None
    severity = "warning" if m["kind"] == "warning" else "error"
    return Remark(severity, m["text"].strip(), severity=severity, generated_line=int(m["line"]))


def _ptxas_error(text: str, lines: PtxLines) -> Remark | None:
    m = _PTXAS_ERROR.match(text)
    if m is None:
        return None
    at = _PTX_LINE.search(text)
    return Remark("error", m[2].strip(), severity="error", generated_line=lines.source_line(int(at[1])) if at else None)


def _ptxas_warning(text: str, lines: PtxLines) -> Remark | None:
    """What the assembler warns of without a number: launch bounds that it drops, and instructions that a board executes badly."""
    m = _PTXAS_WARNING.match(text)
    if m is None:
        return None
    message = " ".join(m[1].split())
    code = "advisory" if message.startswith("Advisory") else "bounds-ignored" if "will be ignored" in message else "warning"
    at = _PTX_LINE.search(text)
    return Remark(code, message, severity="warning", generated_line=lines.source_line(int(at[1])) if at else None)
