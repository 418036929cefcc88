"""Compile the benchmark candidates on a machine without a GPU: `python -m bench.build --out FOLDER [family ...]`.

Writes one folder per candidate with `kernel.cubin` (and `kernel-1.cubin`, .. of a plan), `manifest.json`, `kernel.cu` and `build.json`, for `bench.run` to load.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import cake_kernels
from bench.candidates import CANDIDATES
from bench.performance import winners
from cake_backend.judge.building import Built, build_routine
from cake_backend.judge.source import read_source


def build_all(out: Path, families: list[str], timeout: float = 120.0, only: frozenset[str] | None = None) -> int:
    """Build every candidate of the families, or those named `only`; returns how many could not be built."""
    texts = {(s.family, s.name): s.text for s in cake_kernels.schedules()}
    failures = 0
    for c in CANDIDATES:
        if (families and c.family not in families) or (only is not None and c.name not in only):
            continue
        text = texts[c.family, c.schedule]
        source = read_source(text, dict(c.params), target=c.target, task=cake_kernels.tasks()[c.family])
        if source.routine is None:
            print(f"{c.name}: {source.summary}", file=sys.stderr)
            failures += 1
            continue
        built = build_routine(source.routine, text, timeout=timeout)
        if not built.cubins or built.build is None or built.manifest is None:
            print(f"{c.name}: {built.summary}", file=sys.stderr)
            failures += 1
            continue
        record = {"name": c.name, "family": c.family, "schedule": c.schedule, "target": c.target, "params": dict(source.routine.tunables)}
        write(out / c.name, built, record)
        resources = built.build.resources
        remarks = sorted({r["code"] for r in built.report["remarks"]})
        print(f"{c.name}: {resources.registers} registers, {resources.spill_stores} B spilled, remarks {remarks or 'none'}", flush=True)
    return failures


def write(folder: Path, built: Built, record: dict[str, Any]) -> None:
    """One candidate's folder, as `bench.cake_runner` loads it."""
    assert built.manifest is not None
    folder.mkdir(parents=True, exist_ok=True)
    for number, cubin in enumerate(built.cubins):
        (folder / (f"kernel-{number}.cubin" if number else "kernel.cubin")).write_bytes(cubin)
    (folder / "kernel.cu").write_text(built.text)
    (folder / "manifest.json").write_text(built.manifest.dumps())
    (folder / "build.json").write_text(json.dumps({**record, "compile": built.report}, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--winners", action="store_true", help="only what won a shape of the recorded results, and the headlines: enough to time everything again in one session")
    parser.add_argument("families", nargs="*")
    arguments = parser.parse_args()
    only = frozenset((*winners(), *(c.name for c in CANDIDATES if c.main))) if arguments.winners else None
    return 1 if build_all(arguments.out, arguments.families, only=only) else 0


if __name__ == "__main__":
    sys.exit(main())
