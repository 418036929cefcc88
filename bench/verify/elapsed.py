"""What a verdict costs: text to verdict in a warm process, single-threaded, CPU milliseconds, best of several runs a schedule.

Nothing of a text or its program is kept from one run to the next; the first run of each text, printed beside, differs by machine noise and
by small tables of layouts and instructions that other schedules may have filled already.

    python -m bench.verify.elapsed [FILE...] [--rounds N] [--json FILE]

Prints one line a schedule with the whole and its phases, then median, 95th percentile, the FA3-class schedules and the bounds they are held
to. The whole is `verify_text` itself; the phases are the same calls made one by one on a fresh program, so that a fact which several
phases need is paid by the first of them. Without files: every good schedule of the repository.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from cake_ir import parse, specialise
from cake_ir.frontend.specialise import retargeted
from cake_verify import verify_text
from cake_verify.analyses import safety
from cake_verify.analyses.machine import Machine
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.replay import start
from cake_verify.analyses.settings import Settings
from cake_verify.gates import ORDER, STATIC, Run, gate
from cake_verify.pause import collector_paused
from cake_verify.verdict import ordered

ROOT = Path(__file__).resolve().parents[2]
CORPUS = (
    "bench/verify/corpus/*.py", "cake_kernels/*/hopper*.py", "cake_kernels/*/ampere*.py", "tests/examples/*.py", "tests/cake_verify/schedules/*.py",
)  # fmt: skip
FA3 = ("tests/examples/fmha_fwd.py", "cake_kernels/attention/hopper.py")
BOUNDS = {"median_ms": 8.0, "p95_ms": 30.0, "fa3_ms": 15.0, "walk_us_an_event": 4.0}
LONG = 200
"""Events of a walk from which on its worlds are no longer most of what an event costs."""
PHASES = ("parse", "frontend", *STATIC, "schedule", "safety", "notes", "order")


def corpus() -> list[Path]:
    """Every good schedule of the repository, in a fixed order."""
    return [path for pattern in CORPUS for path in sorted(ROOT.glob(pattern))]


class Clock:
    """Milliseconds of processor time by phase."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def timed(self, name: str, call: Callable[..., Any], *args: Any) -> Any:
        begin = time.process_time()
        got = call(*args)
        self.spent[name] = self.spent.get(name, 0.0) + (time.process_time() - begin) * 1e3
        return got


def whole(text: str, rounds: int) -> tuple[float, float, str]:
    """Milliseconds of processor time from text to verdict, the least of `rounds` and the first, and the verdict."""
    spent, outcome = [], ""
    for _ in range(rounds):
        begin = time.process_time()
        outcome = verify_text(text).verdict
        spent.append((time.process_time() - begin) * 1e3)
    return min(spent), spent[0], outcome


def phases(text: str, rounds: int) -> dict[str, float]:
    """Milliseconds of every phase, the least of `rounds` for each."""
    least = dict.fromkeys(PHASES, float("inf"))
    for _ in range(rounds):
        clock = Clock()
        run = Run()
        with collector_paused():
            module = clock.timed("parse", parse, text, "bench")
            for template in module.schedules:
                program = clock.timed("frontend", specialise, template).program
                for target in template.targets or ("",):
                    each = program if target == program.target else clock.timed("frontend", retargeted, program, target)
                    for name in STATIC:
                        clock.timed(name, partial(gate, again=each is not program), run, name, each)
                clock.timed("schedule", gate, run, "schedule", program)
                clock.timed("safety", safety.check, program)
                clock.timed("notes", gate, run, "notes", program)
            clock.timed("order", ordered, run.found, ORDER)
        least = {name: min(least[name], clock.spent.get(name, 0.0)) for name in PHASES}
    return least


def walk(text: str, rounds: int) -> dict[str, float]:
    """The safety gate taken apart: its tables, its search for settings, the walk itself, and the events walked."""
    least = {"tables": float("inf"), "settings": float("inf"), "walk": float("inf")}
    for _ in range(rounds):
        program = specialise(parse(text, "bench").schedules[0]).program
        assert program is not None
        with collector_paused():
            begin = time.process_time()
            machine = Machine(Plan(program))
            tables = time.process_time()
            search = Settings(program)
            found = search.find()[0]
            searched = time.process_time()
            events = 0
            for setting in found:
                world = start(machine, setting, search.prefix)
                machine.run(world)
                events += world.events
            end = time.process_time()
        for name, ms in (("tables", tables - begin), ("settings", searched - tables), ("walk", end - searched)):
            least[name] = min(least[name], ms * 1e3)
        least["events"] = events
    return least


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Median, 95th percentile and worst over all schedules, the FA3-class ones, and microseconds an event."""
    ms = [r["ms"] for r in rows]
    return {
        "schedules": len(rows),
        "median_ms": round(median(ms), 2),
        "p95_ms": round(quantiles(ms, n=20)[-1], 2) if len(ms) > 1 else ms[0],
        "worst_ms": max(ms),
        "median_first_ms": round(median(r["first_ms"] for r in rows), 2),
        "fa3_ms": {r["file"]: r["ms"] for r in rows if r["file"] in FA3},
        "events": {"all": sum(r["walk"]["events"] for r in rows), "most": max(r["walk"]["events"] for r in rows), "fa3": {r["file"]: r["walk"]["events"] for r in rows if r["file"] in FA3}},
        "walk_us_an_event": round(1e3 * sum(r["walk"]["walk"] for r in rows) / max(1, sum(r["walk"]["events"] for r in rows)), 2),
        "walk_us_an_event_worst": round(max(1e3 * r["walk"]["walk"] / r["walk"]["events"] for r in rows if r["walk"]["events"] >= min(LONG, max(x["walk"]["events"] for x in rows))), 2),
        "phases_ms": {name: round(sum(r["phases"][name] for r in rows) / len(rows), 2) for name in PHASES},
        "safety_ms": {name: round(sum(r["walk"][name] for r in rows) / len(rows), 2) for name in ("tables", "settings", "walk")},
    }


def main() -> None:
    """Print the table, and write the figures where asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.verify.elapsed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, default=None, help="where the figures go")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for path in sorted((ROOT / "tests" / "examples").glob("*.py")):  # what makes a process warm: rules imported, tables of instructions read
        verify_text(path.read_text("utf-8"))
    print(f"{'schedule':<52}{'ms':>7} |" + "".join(f"{name[:8]:>9}" for name in PHASES) + " |" + "".join(f"{n:>9}" for n in ("tables", "settings", "walk", "events", "us/event")))
    for path in [p.resolve() for p in options.files] or corpus():
        text = path.read_text("utf-8")
        ms, first, outcome = whole(text, options.rounds)
        row = {"file": str(path.relative_to(ROOT)), "verdict": outcome, "ms": round(ms, 2), "first_ms": round(first, 2),
               "phases": {k: round(v, 3) for k, v in phases(text, options.rounds).items()},
               "walk": {k: round(v, 3) for k, v in walk(text, options.rounds).items()}}  # fmt: skip
        rows.append(row)
        inside = "".join(f"{row['phases'][name]:>9.2f}" for name in PHASES)
        deep = "".join(f"{row['walk'][name]:>9.2f}" for name in ("tables", "settings", "walk"))
        print(f"{row['file'][-51:]:<52}{row['ms']:>7.2f} |{inside} |{deep}{row['walk']['events']:>9}{1e3 * row['walk']['walk'] / max(1, row['walk']['events']):>9.2f}{'' if outcome == 'pass' else ' ' + outcome}")
    found = figures(rows)
    print(f"\n{found['schedules']} schedules: median {found['median_ms']} ms (bound {BOUNDS['median_ms']}), 95th percentile {found['p95_ms']} ms (bound {BOUNDS['p95_ms']}), worst {found['worst_ms']} ms")
    print(f"median of the first run of each text: {found['median_first_ms']} ms")
    print(f"FA3-class (bound {BOUNDS['fa3_ms']} ms): {', '.join(f'{k} {v}' for k, v in found['fa3_ms'].items()) or 'none among these'}")
    print(f"means: {', '.join(f'{k} {v}' for k, v in found['phases_ms'].items())}")
    print(f"safety: {', '.join(f'{k} {v}' for k, v in found['safety_ms'].items())}")
    print(f"walk: {found['events']['all']:,} events, at most {found['events']['most']:,} a schedule; {found['walk_us_an_event']} us an event, "
          f"at most {found['walk_us_an_event_worst']} (bound {BOUNDS['walk_us_an_event']})")  # fmt: skip
    if options.json:
        report = {"command": f"python -m bench.verify.elapsed --rounds {options.rounds}", "machine": f"{platform.machine()}, Python {platform.python_version()}", "bounds": BOUNDS, **found, "ms": {r["file"]: r["ms"] for r in rows}}  # fmt: skip
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
