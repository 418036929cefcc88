"""Instructions of the hot loop of built candidates, a row each: `python -m bench.mix FOLDER [NAME ...]` (no GPU needed).

FOLDER is what `bench.build` wrote. Counts are a thread's (a warp's issue slots) in one pass of the loop with the most MMAs at the greatest depth; a loop
that was unrolled does several blocks a pass. The last column is everything that none of the others names: addresses, waits, branches.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from cake_backend.toolchain.sass import WGMMA, LoopReport, read_sass

KINDS = ("HGMMA", "MUFU", "FMNMX", "FFMA", "FMUL", "FADD", "F2FP", "FSEL", "ISETP", "SHFL", "R2UR", "UMOV", "MOV", "SYNCS", "BAR", "MEMBAR", "LDL", "STL")


def row(loop: LoopReport) -> dict[str, int]:
    """Counts by the first word of the opcode, asynchronous MMAs of all types as HGMMA, and what is left."""
    by_word: Counter[str] = Counter()
    for opcode, count in loop.mix.items():
        word = opcode.split(".")[0]
        by_word["HGMMA" if word in WGMMA else word] += count
    found = {kind: by_word[kind] for kind in KINDS}
    return {"all": loop.instructions, **found, "other": loop.instructions - sum(found.values())}


def table(folder: Path, names: list[str]) -> list[str]:
    """A Markdown table over the candidates of a folder, those named or all."""
    head = ["loop of", "all", *KINDS, "other"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for record in sorted(folder.glob("*/build.json")):
        name = json.loads(record.read_text())["name"]
        if names and name not in names:
            continue
        for cubin in sorted(record.parent.glob("kernel*.cubin")):
            for report in (read_sass(cubin.read_bytes()) or {}).values():
                loop = report.hot_loop()
                if loop is not None:
                    lines.append(f"| `{name}` | " + " | ".join(str(v) for v in row(loop).values()) + " |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    lines = table(arguments.folder, arguments.names)
    print("\n".join(lines))
    return 0 if len(lines) > 2 else 1


if __name__ == "__main__":
    sys.exit(main())
