"""Right numbers on a GPU over the whole shape suite: `python -m bench.edges --out FILE [family ...]`.

Every schedule of the corpus with its own parameters, and with those that `docs/performance.md` names as the fastest (`--all`: with those of every benchmark candidate), goes from text to
verdict through `cake_backend.judge.evaluate`: small, ragged, odd and empty shapes, those drawn afresh, and the smallest timed one (the
others are checked where they are timed, by `bench.run`). Nothing is timed here, so several run at once, each under a lease of its own.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import cake_kernels
from bench.candidates import CANDIDATES
from bench.performance import winners
from bench.provenance import command

RUN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule with parameters. `why`: its own (`default`), the fastest of a shape (`fastest`), or one that may become it (`candidate`)."""

    name: str
    family: str
    schedule: str
    why: str
    params: dict[str, Any] = field(default_factory=dict)
    target: str = "sm_90a"


def choices(families: list[str], everything: bool = False, only: Sequence[str] = ()) -> list[Choice]:
    """Every schedule as it is, then what won a shape of the recorded results, or `everything` that is timed; the largest data first, so that no long one comes last.

    `only`: patterns of names, of which one has to fit.
    """
    found = [Choice(f"{s.family}/{s.name}", s.family, s.name, "default") for s in cake_kernels.schedules()]
    known = {c.name: c for c in CANDIDATES}
    found += [Choice(name, c.family, c.schedule, "fastest", dict(c.params), c.target) for name in dict.fromkeys(winners()) if (c := known.get(name))]
    others = known.keys() - {c.name for c in found} if everything else ()
    found += [Choice(c.name, c.family, c.schedule, "candidate", dict(c.params), c.target) for c in CANDIDATES if c.name in others]
    order = {"attention": 0, "kmeans_assign": 1, "gemm": 2, "gemm_fp8": 3}
    found = [c for c in found if (not families or c.family in families) and (not only or any(fnmatch(c.name, pattern) for pattern in only))]
    return sorted(found, key=lambda c: order.get(c.family, 4))


def smallest_timed(choice: Choice, text: str) -> tuple[str, ...]:
    """The benchmark shape of the least data that the parameters and what the schedule assumes leave."""
    from cake_backend.judge.domain import Domain, assumptions
    from cake_backend.judge.source import read_source

    task = cake_kernels.tasks()[choice.family]
    routine = read_source(text, choice.params, target=choice.target, task=task).routine
    if routine is None:
        return ()
    domain = Domain(task, guards=assumptions(routine))
    timed = [s for s in task.specialised(routine.tunables) if s.kind == "bench" and domain.covers(s)]
    least = min(timed, key=lambda s: sum(x.nbytes for x in task.layouts(s.axes).values()), default=None)
    return () if least is None else (least.name,)


def run_one(choice: Choice, device: str) -> dict[str, Any]:
    """The outcome of one choice, by shape: how many cases were right and how many were not."""
    from cake_backend.judge import evaluate

    begun = time.monotonic()
    text = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == (choice.family, choice.schedule))
    options = {"timing": False, "cycles": False, "bench": smallest_timed(choice, text), "run_timeout": RUN_SECONDS, "simulate_budget": 20.0, "policies": 1}  # the last two are for a rehearsal
    record = evaluate(text, params=choice.params, task=cake_kernels.tasks()[choice.family], target=choice.target, device=device, options=options)
    shapes: dict[str, list[int]] = {}
    for case in record.get("numerics", {}).get("cases", ()):
        counts = shapes.setdefault("drawn afresh" if case["heldout"] else case["shape"], [0, 0])
        counts[not case["status"].startswith("PASSED")] += 1
    domain = record.get("domain", {})
    return {
        "name": choice.name, "family": choice.family, "schedule": choice.schedule, "why": choice.why, "params": choice.params,
        "status": record["status"], "summary": record["summary"], "evidence": record["evidence"], "shapes": shapes,
        "outside": [o["shape"] for o in domain.get("outside", ())], "fixed": domain.get("fixed_axes", {}),
        "gpu_s": record["cost"].get("gpu_s", 0.0), "seconds": round(time.monotonic() - begun, 2), "device": record["device"],
        "wrong": [c for c in record.get("numerics", {}).get("cases", ()) if not c["status"].startswith("PASSED")][:4],
    }  # fmt: skip


def own_lease() -> None:
    """Each process of the pool leases a device of its own: what is not timed may share it."""
    os.environ["CAKE_LEASES"] = tempfile.mkdtemp(prefix="cake-leases-")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def attempt(choice: Choice, device: str) -> dict[str, Any]:
    """As `run_one`; an exception is an outcome too, because the others must go on."""
    try:
        return run_one(choice, device)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        return {"name": choice.name, "family": choice.family, "schedule": choice.schedule, "why": choice.why, "params": choice.params,
                "status": "INFRA_ERROR", "summary": told[:500], "evidence": "none", "shapes": {}, "outside": [], "fixed": {}, "wrong": []}  # fmt: skip


def together(earlier: dict[str, Any], later: dict[str, Any], families: list[str], only: Sequence[str] = ()) -> dict[str, Any]:
    """A later record, and of an earlier one the runs of the families, or names, that were not asked for again."""
    again = {r["name"] for r in later["runs"]}
    kept = [r for r in earlier["runs"] if (families and r["family"] not in families) or (only and r["name"] not in again)]
    runs = sorted([*kept, *later["runs"]], key=lambda r: (r["family"], r["why"], r["name"]))
    return later | {"runs": runs, "wall_s": round(earlier["wall_s"] + later["wall_s"], 1), "asked": len(kept) + later["asked"], "command": f"{earlier['command']}`, `{later['command']}"}


def right(run: dict[str, Any]) -> bool:
    """Whether everything that was tried came out right."""
    return run["status"].startswith("PASSED") and all(not wrong for _, wrong in run["shapes"].values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="gpu", help="gpu, or simulate for a rehearsal without one")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds after which nothing further starts")
    parser.add_argument("--parallel", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--add", type=Path, help="an earlier record, of which the families that are not named here are kept")
    parser.add_argument("--all", action="store_true", help="every benchmark candidate, not the fastest alone")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="names to try (may be given again); with --add the others' runs are kept")
    parser.add_argument("families", nargs="*")
    arguments = parser.parse_args()
    begun, runs, wanted = time.monotonic(), [], choices(arguments.families, arguments.all, arguments.only)
    earlier = None if arguments.add is None else json.loads(arguments.add.read_text())  # before --out, which may be the same file, is written
    pool = ProcessPoolExecutor(arguments.parallel, mp_context=multiprocessing.get_context("spawn"), initializer=own_lease)
    waiting: dict[Future[dict[str, Any]], Choice] = {pool.submit(attempt, c, arguments.device): c for c in wanted}
    for done in as_completed(waiting):
        if done.cancelled():
            continue
        runs.append(done.result())
        last = runs[-1]
        print(f"{last['name']}: {last['status']} {sum(map(sum, last['shapes'].values()))} cases in {last.get('seconds', 0)} s {last['summary'][:160]}", flush=True)
        if time.monotonic() - begun > arguments.budget:
            for other in waiting:
                other.cancel()
        record = {
            "command": command("bench.edges"), "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "device": next((r["device"] for r in runs if r.get("device")), None), "asked": len(wanted), "wall_s": round(time.monotonic() - begun, 1),
            "not_started": sorted({c.name for c in wanted} - {r["name"] for r in runs}), "runs": sorted(runs, key=lambda r: (r["family"], r["why"], r["name"])),
        }  # fmt: skip
        if earlier is not None:
            record = together(earlier, record, arguments.families, arguments.only)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(record, separators=(",", ":"), default=str) + "\n")  # after each: a later fault must lose nothing
    pool.shutdown(wait=True)
    bad = [r["name"] for r in runs if not right(r)]
    print(f"{len(runs)} of {len(wanted)}; {'not right: ' + ', '.join(bad) if bad else 'all right'}")
    return 1 if bad or len(runs) < len(wanted) else 0


if __name__ == "__main__":
    sys.exit(main())
