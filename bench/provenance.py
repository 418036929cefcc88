"""How a result was made: the command, with the folders of that machine replaced by the ones that the documentation names, and what was left out of it."""

from __future__ import annotations

import sys
from pathlib import Path

LEFT_OUT = "left out of this run"
"""The error of a contender that was not asked to run, and which no table shows."""


def command(module: str) -> str:
    """The command line of this process, as someone would repeat it from the repository's root."""
    words = list(sys.argv[1:])
    for i, word in enumerate(words[:-1]):
        if word == "--out":
            words[i + 1] = f"bench/results/{Path(words[i + 1]).name}"
        elif word == "--built" and Path(words[i + 1]).is_absolute():
            words[i + 1] = ".carry/cubins"  # wherever that machine had what `bench.build` made
    return " ".join(["python3", "-m", module, *words])
