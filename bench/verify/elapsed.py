"""What a verdict costs: text to verdict in a warm process, single-threaded, CPU milliseconds, best of several runs a schedule.

Nothing of a text or its program is kept from one run to the next; the first run of each text, printed beside, differs by machine noise and
by small tables of layouts and instructions that other schedules may have filled already.

    python -m bench.verify.elapsed [FILE...] [--rounds N] [--passes N] [--json FILE]

The rounds of a text are spread over several passes over all texts, each in a warm process of its own, one after the other. What else runs on a
machine slows every run of some seconds alike, so that the best of runs in a row would be that second's; and how the memory of a process happens
to lie makes up to a tenth for all of its life. What each pass says by itself is printed too, so that one can see how still the machine was:
where the passes differ by more than a few per cent, more of them are needed.

Prints one line a schedule with the whole and its phases, then median, 95th percentile, the FA3-class schedules and the bounds they are held
to. The whole is `verify_text` itself; the phases are the same calls made one by one on a fresh program, so that a fact which several
phases need is paid by the first of them. Without files: every good schedule of the repository.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from cake_ir import parse, specialise
from cake_ir.frontend.specialise import retargeted
from cake_ir.native import form
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
FORMS = {"python": "in Python", "native": "compiled (`python -m cake_verify.native`)"}
"""Which form of the verifier is measured; `CAKE_NATIVE=0` measures the Python where the other was built."""
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


@dataclass(frozen=True)
class Measured:
    """What one pass found for one text: the least of its runs and the first one, the verdict, phases and the walk's parts."""

    ms: float
    first: float
    verdict: str
    phases: dict[str, float]
    walk: dict[str, float]


def one_pass(paths: list[Path], rounds: int) -> list[Measured]:
    """So many rounds of every text in this process, once it is warm: rules imported, tables of instructions read."""
    for path in sorted((ROOT / "tests" / "examples").glob("*.py")):
        verify_text(path.read_text("utf-8"))
    texts = [path.read_text("utf-8") for path in paths]
    return [Measured(*whole(text, rounds), phases(text, rounds), walk(text, rounds)) for text in texts]


def row(file: str, passes: list[Measured]) -> dict[str, Any]:
    """One text's figures: the least over all passes."""
    least = lambda part: {name: round(min(getattr(m, part)[name] for m in passes), 3) for name in getattr(passes[0], part)}  # noqa: E731 - two uses, in the next line
    return {"file": file, "verdict": passes[-1].verdict, "ms": round(min(m.ms for m in passes), 2), "first_ms": round(min(m.first for m in passes), 2),
            "passes": [round(m.ms, 2) for m in passes], "phases": least("phases"), "walk": least("walk")}  # fmt: skip


def shares(rounds: int, passes: int) -> list[int]:
    """Rounds by pass, as even as they can be; no pass without one."""
    passes = max(1, min(passes, rounds))
    return [rounds // passes + (k < rounds % passes) for k in range(passes)]


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Median, 95th percentile and worst over all schedules, the FA3-class ones, and microseconds an event."""
    ms = [r["ms"] for r in rows]
    return {
        "schedules": len(rows),
        "median_ms": round(median(ms), 2),
        "p95_ms": round(quantiles(ms, n=20)[-1], 2) if len(ms) > 1 else ms[0],
        "worst_ms": max(ms),
        "median_ms_by_pass": [round(median(each), 2) for each in zip(*(r["passes"] for r in rows), strict=True)],
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
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--passes", type=int, default=3, help="processes that the rounds are spread over")
    parser.add_argument("--json", type=Path, default=None, help="where the figures go")
    options = parser.parse_args()
    paths = [p.resolve() for p in options.files] or corpus()
    passes: list[list[Measured]] = []
    for rounds in shares(options.rounds, options.passes):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            passes.append(fresh.submit(one_pass, paths, rounds).result())
        print(f"pass {len(passes)}: median {median(m.ms for m in passes[-1]):.2f} ms over {rounds} rounds a text", file=sys.stderr)
    rows = [row(str(path.relative_to(ROOT)), list(of_text)) for path, *of_text in zip(paths, *passes, strict=True)]
    print(f"{'schedule':<52}{'ms':>7} |" + "".join(f"{name[:8]:>9}" for name in PHASES) + " |" + "".join(f"{n:>9}" for n in ("tables", "settings", "walk", "events", "us/event")))
    for r in rows:
        inside = "".join(f"{r['phases'][name]:>9.2f}" for name in PHASES)
        deep = "".join(f"{r['walk'][name]:>9.2f}" for name in ("tables", "settings", "walk"))
        print(f"{r['file'][-51:]:<52}{r['ms']:>7.2f} |{inside} |{deep}{r['walk']['events']:>9}{1e3 * r['walk']['walk'] / max(1, r['walk']['events']):>9.2f}{'' if r['verdict'] == 'pass' else ' ' + r['verdict']}")
    found = figures(rows)
    print(f"\n{found['schedules']} schedules, {FORMS[form()]}: median {found['median_ms']} ms (bound {BOUNDS['median_ms']}), 95th percentile {found['p95_ms']} ms (bound {BOUNDS['p95_ms']}), worst {found['worst_ms']} ms")
    print(f"medians of each pass alone: {', '.join(f'{ms} ms' for ms in found['median_ms_by_pass'])}")
    print(f"median of the first run of each text: {found['median_first_ms']} ms")
    print(f"FA3-class (bound {BOUNDS['fa3_ms']} ms): {', '.join(f'{k} {v}' for k, v in found['fa3_ms'].items()) or 'none among these'}")
    print(f"means: {', '.join(f'{k} {v}' for k, v in found['phases_ms'].items())}")
    print(f"safety: {', '.join(f'{k} {v}' for k, v in found['safety_ms'].items())}")
    print(f"walk: {found['events']['all']:,} events, at most {found['events']['most']:,} a schedule; {found['walk_us_an_event']} us an event, "
          f"at most {found['walk_us_an_event_worst']} (bound {BOUNDS['walk_us_an_event']})")  # fmt: skip
    if options.json:
        report = {"command": f"python -m bench.verify.elapsed --rounds {options.rounds} --passes {options.passes}", "machine": f"{platform.machine()}, Python {platform.python_version()}", "form": form(), "bounds": BOUNDS, **found, "ms": {r["file"]: r["ms"] for r in rows}}  # fmt: skip
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
