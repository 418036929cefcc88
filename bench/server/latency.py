"""Start-up and call latency: `python bench/server/latency.py`.

Prints, each with its budget: server start to the first tool list; a verify call over stdio on top of the check itself; `cake verify FILE`
as a whole process; the gates alone, in a warm process, on every schedule of the corpus.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

import cake_kernels
import cake_verify

CAKE = [sys.executable, "-m", "cake_mcp"]


def say(what: str, values: list[float], unit: str, budget: float | None = None) -> None:
    """One line: median, worst, budget."""
    values = sorted(values)
    line = f"{what:<58} median {statistics.median(values):8.2f} {unit}  worst {values[-1]:8.2f} {unit}"
    print(line + (f"  budget {budget:g} {unit}" + ("" if statistics.median(values) <= budget else "  OVER") if budget is not None else ""))


async def over_stdio(rounds: int, text: str) -> None:
    """Start-up and calls of a server in a process of its own."""
    starts, calls, checks = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            parameters = StdioServerParameters(
                command=CAKE[0], args=[*CAKE[1:], "serve", "--workspace", f"{folder}/{number}"], env=dict(os.environ)
            )
            begin = time.perf_counter()
            async with Client(parameters) as client:
                await client.list_tools()
                starts.append(time.perf_counter() - begin)
                if number:
                    continue
                for warm in range(30):
                    begin = time.perf_counter()
                    answer = (await client.call_tool("verify", {"text": text})).structured_content
                    if warm >= 5 and answer is not None:
                        calls.append((time.perf_counter() - begin) * 1e3 - answer["elapsed_ms"])
                        checks.append(answer["elapsed_ms"])
    say("server start to first tool list", starts, "s", 2.5)
    say("verify over stdio, on top of the check", calls, "ms", 15)
    say("the check itself, in the server", checks, "ms")


def whole_process(rounds: int, path: Path) -> None:
    """`cake verify FILE`, interpreter start included."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        subprocess.run([*CAKE, "verify", str(path), "--format", "json"], stdout=subprocess.DEVNULL, check=False)
        times.append(time.perf_counter() - begin)
    say("cake verify FILE, whole process", times, "s", 0.7)


def warm(rounds: int, paths: list[Path]) -> None:
    """The gates in this process, text to verdict."""
    for path in paths:
        text = path.read_text("utf-8")
        verdict = cake_verify.verify_text(text, filename=path.name)
        times = [cake_verify.verify_text(text, filename=path.name).elapsed_ms for _ in range(rounds)]
        say(f"gates, warm: {path.parent.name}/{path.stem} ({verdict.verdict})", times, "ms", 25)


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="schedules to verify besides the corpus")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    corpus = [schedule.path for schedule in cake_kernels.schedules()]
    gemm = next(path for path in corpus if path.parent.name == "gemm")
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    anyio.run(over_stdio, options.rounds, gemm.read_text("utf-8"))
    whole_process(options.rounds, gemm)
    warm(options.rounds, corpus + options.files)


if __name__ == "__main__":
    main()
