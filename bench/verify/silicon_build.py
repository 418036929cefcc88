"""Build the mutants for silicon, without a GPU: `python -m bench.verify.silicon_build --out .carry/mutants --count 190`.

A mutant is lowered whatever the verifier says of it: the lowering itself asks nobody, and no tool calls this. Its text gets delays and time
limits (`silicon_delays`) and is compiled. Each becomes a folder with `case.json` (bound launches of every setting, what is known of the
mutant) and `kernel.cubin.xz`; arguments and expected outputs lie once a schedule in `arguments/NAME.npz` as raw bytes. `index.json` lists
all, those that lowering, binding or the compiler refused too; `texts.json` holds the schedules, for a later verifier to judge again.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import re
import shutil
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.verify.cases import CASES, Case
from bench.verify.measure import TruthStore
from bench.verify.run import STORE
from bench.verify.silicon_delays import SEED, WAIT_NANOSECONDS, Delayed, bounded, delayed
from bench.verify.silicon_inside import MOST_SHARED, SCRATCH_BYTES
from bench.verify.silicon_neighbours import SOURCE as NEIGHBOURS
from bench.verify.silicon_sample import CONTROL, SHIPPED, Pick, add_shipped, candidates, controls, hopper_subjects, lowers, sample
from bench.verify.truth import good, program_of
from cake_backend.binding import BindError, TensorLayout, bind
from cake_backend.cuda.lower import Lowered, lower
from cake_backend.judge.device.launcher import STATIC_SMEM_LIMIT
from cake_backend.manifest import DTYPE_BYTES, Manifest
from cake_backend.toolchain import compile_cuda
from cake_ir.fault import FaultError

TARGET = "sm_90a"


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m bench.verify.silicon_build", description=__doc__)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--count", type=int, default=190, help="mutants, controls not counted")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--each", type=int, default=0, help="choose among so many mutants of a class and schedule (0: all)")
    p.add_argument("--again", type=Path, nargs="*", default=[], help="earlier reports: what disagreed in them is taken again")
    p.add_argument("--only-again", action="store_true", help="nothing but those that silicon did not show, without controls")
    p.add_argument("--without", type=Path, nargs="*", default=[], help="earlier reports: none of their mutants")
    p.add_argument("--subjects", nargs="*", default=[])
    p.add_argument("--crowd", action="store_true", help="products in front of those of the kernel")
    p.add_argument("--workers", type=int, default=2, help="compilers at a time")
    p.add_argument("--store", type=Path, default=STORE, help="ground truth that bench.verify.run has found")
    a = p.parse_args(argv)
    add_shipped(SHIPPED)
    subjects = [s for s in hopper_subjects() if not a.subjects or s in a.subjects]
    before = [json.loads(f.read_text()) for f in a.again]
    again = frozenset(d["key"] for r in before for d in r["disagreements"] if not a.only_again or (d["kind"] == "not shown" and not d["serialised"]))
    without = frozenset((m["key"], m["title"]) for f in a.without for m in json.loads(f.read_text())["mutants"])
    refused: dict[str, Pick] = {}

    def past_the_lowering(p: Pick) -> str:
        if reason := lowers(p):
            refused[p.key] = p
        return reason

    found = candidates(subjects, TruthStore(a.store), without, again if a.only_again else None, (a.each, a.seed))
    if a.only_again:
        picks = [replace(p, why="again") for p in found if p.key in again and not past_the_lowering(p)]
    else:
        picks = controls(subjects) + sample(found, a.count, a.seed, again, past_the_lowering)
    passed = [k for k, p in refused.items() if p.verdict == "pass"]
    print(f"{len(refused)} more were refused by the lowering, {len(passed)} of them passed by the verifier: {passed}")
    records = build(picks, a.out, a.workers, crowd=a.crowd)
    print(json.dumps(Counter(r["built"] for r in records)), f"{folder_bytes(a.out) / 2**20:.1f} MiB")
    return 0 if all(r["built"] == "ok" for r in records if r["cls"] == CONTROL) else 1


def build(picks: list[Pick], out: Path, workers: int = 2, plain: int = 0, crowd: bool = False) -> list[dict[str, Any]]:
    """Build all; returns the records of `index.json` in the order of `picks`. With `plain`, no delays and waits of so many nanoseconds."""
    if out.exists():
        shutil.rmtree(out)
    (out / "arguments").mkdir(parents=True)
    neighbours = compile_cuda(NEIGHBOURS, TARGET, cache=None)
    assert neighbours.cubin is not None, neighbours.log
    (out / "neighbours.cubin").write_bytes(neighbours.cubin)
    for name in sorted({p.subject for p in picks}):
        write_arguments(CASES[name], out / "arguments" / f"{name}.npz")
    records: dict[str, dict[str, Any]] = {}
    started = time.monotonic()
    with ThreadPoolExecutor(workers) as pool:  # compilers are processes of their own; lowering is short
        for done in as_completed(pool.submit(build_one, p, out, plain, crowd) for p in picks):
            record = done.result()
            records[record["key"]] = record
            if record["built"] != "ok" or len(records) % 20 == 0:
                print(f"{len(records)}/{len(picks)} {time.monotonic() - started:.0f} s {record['key']}: {record['built']} {record['detail'][:160]}", flush=True)
    ordered = [records[p.key] for p in picks]
    head = {"target": TARGET, "wait_nanoseconds": plain or WAIT_NANOSECONDS, "seed_symbol": SEED}
    (out / "index.json").write_text(json.dumps({**head, "mutants": ordered}, indent=0))
    (out / "texts.json").write_text(json.dumps({p.key: p.text for p in picks}, indent=0))
    return ordered


def build_one(pick: Pick, out: Path, plain: int = 0, crowd: bool = False) -> dict[str, Any]:
    """One folder, or the reason why there is none: `built` is `ok`, `lowering`, `delays`, `binding`, `compiler` or `crash`."""
    record = {**pick.record(), "built": "ok", "detail": "", "serialised": False, "sites": 0}
    case = CASES[pick.subject]
    program = program_of(pick.text, case)
    assert program is not None, pick.key
    try:
        lowered = lower(program)
        changed = Delayed(bounded(lowered.text, plain), 0, 0, 0) if plain else delayed(lowered.text, boxes_of(lowered), room_in(lowered.manifest), crowd)
        settings = [bound_setting(lowered.manifest, case, i) for i in range(len(case.settings))]
    except FaultError as error:
        return {**record, "built": "lowering", "detail": f"line {error.fault.span.line}: {error.fault.message}"}
    except BindError as error:
        return {**record, "built": "binding", "detail": str(error)}
    except ValueError as error:
        return {**record, "built": "delays", "detail": str(error)}
    except Exception as error:  # the lowering may trust what the verifier refuses: a crash past the gate is a result
        return {**record, "built": "crash", "detail": f"{type(error).__name__}: {error}"}
    made = compile_cuda(changed.text, TARGET, cache=None)
    if made.cubin is None:
        first = next((r.text for r in made.remarks if r.severity == "error"), made.status)
        return {**record, "built": "compiler", "detail": first}
    record |= {"serialised": made.serialised, "sites": changed.sites, "registers": made.resources.registers}
    folder = out / pick.name
    folder.mkdir()
    (folder / "kernel.cubin.xz").write_bytes(lzma.compress(made.cubin, preset=9))
    (folder / "manifest.json").write_text(lowered.manifest.dumps())
    tolerance = max(case.tolerance, 1e-6)
    spec = {"key": pick.key, "subject": pick.subject, "tolerance": tolerance, "late": late_inputs(case, lowered.manifest), "settings": settings}
    (folder / "case.json").write_text(json.dumps(spec, separators=(",", ":")))
    return record


def boxes_of(lowered: Lowered) -> dict[str, int]:
    """Bytes of a box by the name of the parameter that is its tensor map."""
    found: dict[str, int] = {}
    for launch in lowered.manifest.launches:
        signature = lowered.text[lowered.text.index(f"\n{launch.entry}(") :].partition("{")[0]
        names = re.findall(r"TensorMap (\w+)", signature)
        maps = [lowered.manifest.maps[p.map] for p in launch.params if p.map is not None]
        found |= {n: math.prod(m.box) * DTYPE_BYTES[m.dtype] for n, m in zip(names, maps, strict=True)}
    return found


def room_in(manifest: Manifest) -> bool:
    """Whether the kernels leave shared memory for the scratch of `silicon_inside`, and need no other launch with it."""
    return all(x.smem + SCRATCH_BYTES <= MOST_SHARED and (x.smem > STATIC_SMEM_LIMIT or x.smem + SCRATCH_BYTES <= STATIC_SMEM_LIMIT) for x in manifest.launches)


def late_inputs(case: Case, manifest: Manifest) -> list[str]:
    """Inputs that a kernel before may still be writing when the mutant starts: those that are not constant, where that or the unmutated schedule waits for that kernel."""
    program = program_of(case.text(), case)
    assert program is not None
    waits = any(op.name == "pdl_wait" for op in program.ops) or any(launch.pdl for launch in manifest.launches)
    return [n for n, t in manifest.tensors.items() if waits and t.mode == "in"]


def bound_setting(manifest: Manifest, case: Case, setting: int) -> dict[str, Any]:
    """Concrete launches for a setting; a persistent grid has as many CTAs as the simulation had, so that each walks several tiles."""
    base = good(case.name, setting)
    layouts = {n: TensorLayout.dense(base.filled.tensors[n].shape, t.dtype) for n, t in manifest.tensors.items()}
    bound = bind(manifest, layouts, base.filled.scalars)
    for launch in bound["launches"]:
        if launch["persistent"] and (ctas := case.grid(setting)) is not None:
            launch["tiles"] = min(launch["tiles"], ctas)
    return bound


def write_arguments(case: Case, path: Path) -> None:
    """Every setting's tensors before the launch (`I.in.NAME`) and, where it changed them, after the simulation (`I.want.NAME`), as bytes.

    Words that blocks only follow each other by may hold anything afterwards: they are named `I.free.NAME`.
    """
    arrays: dict[str, Any] = {}
    for i in range(len(case.settings)):
        base = good(case.name, i)
        for name, tensor in base.filled.tensors.items():
            arrays[f"{i}.in.{name}"] = before = np.frombuffer(np.ascontiguousarray(tensor).tobytes(), np.uint8)
            if name not in base.outputs:
                arrays[f"{i}.free.{name}"] = np.empty(0, np.uint8)  # the name is all that is asked for
            after = np.frombuffer(np.ascontiguousarray(base.outputs.get(name, tensor)).tobytes(), np.uint8)
            if not np.array_equal(before, after):
                arrays[f"{i}.want.{name}"] = after
    np.savez_compressed(path, **arrays)


def folder_bytes(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


if __name__ == "__main__":
    sys.exit(main())
