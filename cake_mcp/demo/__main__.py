"""Runs the demo; 0 if every answer was what it must be, 1 if one was not."""

import argparse
import sys
import time
from pathlib import Path

import anyio

from . import steps
from .agent import connected
from .transcript import Transcript, WrongAnswer


def main() -> int:
    """Run it in a new workspace, which is kept."""
    parser = argparse.ArgumentParser(prog="python -m cake_mcp.demo", description="The loop, end to end, through an MCP client over stdio.")
    parser.add_argument("--workspace", type=Path, help="a new folder; default: .cake/demo-TIME")
    options = parser.parse_args()
    workspace = options.workspace or Path(".cake") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    transcript = Transcript()
    started = time.monotonic()
    try:
        anyio.run(_run, workspace.resolve(), transcript)
    except WrongAnswer as error:
        print(f"\nthe demo failed: {error}", file=sys.stderr)
        return 1
    except BaseExceptionGroup as group:  # the client's task group wraps what a step raised
        wrong, others = group.split(WrongAnswer)
        if wrong is None or others is not None:
            raise
        print(f"\nthe demo failed: {_innermost(wrong)}", file=sys.stderr)
        return 1
    print(f"\nevery answer was what it must be ({time.monotonic() - started:.0f} s)")
    return 0


async def _run(workspace: Path, transcript: Transcript) -> None:
    async with connected(workspace, transcript) as agent:
        await steps.run(agent, transcript, workspace)


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


if __name__ == "__main__":
    sys.exit(main())
