"""What the commands' arguments have in common: parameters, extents, and the exit status of bad usage."""

import argparse
import ast
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

BAD_USAGE = 3


class _Help(argparse.HelpFormatter):
    """Help as wide as the terminal. One is made for every argument that is added, and `argparse` would import `shutil`, and that all formats of
    archives, to learn the width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    """Columns of the terminal, 80 where there is none."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]  # no standard output: an AttributeError
    except (AttributeError, ValueError, OSError):
        return 80


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves with status 3, since 2 means undecided."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": _Help, **options})

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(BAD_USAGE)


def assignments(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs as a mapping; a value is a Python literal, or else text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise argparse.ArgumentTypeError(f"`{pair[:60]}` is not NAME=VALUE")
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            values[name] = value
    return values


def add_program_options(parser: argparse.ArgumentParser) -> None:
    """Options that say which program a text stands for."""
    parser.add_argument("--target", help="architecture, for schedules that do not say: sm_90a, sm_80, ...")
    parser.add_argument(
        "-P", "--param", action="append", default=[], metavar="NAME=VALUE", help="value of a compile-time parameter; may be repeated"
    )


def add_workspace_option(parser: argparse.ArgumentParser) -> None:
    """Which workspace to use."""
    parser.add_argument("--workspace", type=Path, help="folder of the workspace; default: $CAKE_WORKSPACE, else the nearest .cake")


def read_text(path: str) -> str:
    """The text of a file; `-` is standard input. Raises `OSError` or `UnicodeDecodeError`."""
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    return data.decode("utf-8-sig")
