"""Cost of the safety gate: microseconds an event and milliseconds a schedule, CPU time, best of several runs in one process.

    python bench/verify/events.py [FILE...]

Prints one line a schedule: events walked over all trip settings, the run alone per event, the gate as a whole, and text to
verdict (parsing and specialising included). Without arguments: the six examples.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from cake_ir import parse, specialise
from cake_verify.analyses.exit import check_exit
from cake_verify.analyses.machine import Machine
from cake_verify.analyses.plan import Plan
from cake_verify.analyses.replay import start
from cake_verify.analyses.safety import check
from cake_verify.analyses.settings import Settings

EXAMPLES = Path(__file__).resolve().parents[2] / "tests" / "examples"


def measure(text: str, rounds: int) -> tuple[int, float, float, float]:
    """Events, microseconds an event, milliseconds of the gate, milliseconds from text to verdict: the best of `rounds`."""
    events, event_us, gate_ms, text_ms = 0, float("inf"), float("inf"), float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        program = specialise(parse(text, "bench").schedules[0]).program
        assert program is not None
        parsed = time.process_time()
        events = check(program).events
        end = time.process_time()
        gate_ms, text_ms = min(gate_ms, (end - parsed) * 1e3), min(text_ms, (end - begin) * 1e3)
        plan = Plan(program)
        machine, search = Machine(plan), Settings(program)
        spent = 0.0
        for setting in search.find()[0]:
            world = start(machine, setting, search.prefix)
            at = time.process_time()
            machine.run(world)
            check_exit(plan, world)
            spent += time.process_time() - at
        event_us = min(event_us, spent * 1e6 / max(1, events))
    return events, event_us, gate_ms, text_ms


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    print(f"{'schedule':<28}{'events':>8}{'us/event':>10}{'gate ms':>10}{'text ms':>10}")
    for path in options.files or sorted(EXAMPLES.glob("*.py")):
        events, event_us, gate_ms, text_ms = measure(path.read_text(), options.rounds)
        print(f"{path.stem:<28}{events:>8}{event_us:>10.2f}{gate_ms:>10.2f}{text_ms:>10.2f}")


if __name__ == "__main__":
    main()
