"""Prints the demo as something a newcomer can follow, and holds it to what it must be."""

import sys
import textwrap
from collections.abc import Iterable
from typing import Any


class WrongAnswer(Exception):
    """A step's answer is not what it must be."""


class Transcript:
    """Numbered steps; what the agent asks, what Cake answers, and what is expected of the answer."""

    def __init__(self) -> None:
        self._step = 0

    def step(self, title: str) -> None:
        """Begin a step."""
        self._step += 1
        print(f"\n\033[1m{self._step}. {title}\033[0m" if sys.stdout.isatty() else f"\n{self._step}. {title}")

    def ask(self, tool: str, arguments: dict[str, Any]) -> None:
        """What the agent sends, long texts shortened."""
        shown = ", ".join(f"{name}={_short(value)}" for name, value in arguments.items())
        print(f"   agent > {tool}({shown})")

    def answer(self, lines: Iterable[str]) -> None:
        """What Cake answers."""
        for line in lines:
            for part in textwrap.wrap(line, 118, subsequent_indent="  ", break_long_words=False) or [""]:
                print(f"   cake  < {part}")

    def note(self, text: str) -> None:
        """A remark for the reader."""
        for part in textwrap.wrap(text, 118):
            print(f"   {part}")

    def expect(self, holds: bool, what: str) -> None:
        """Raise `WrongAnswer` unless it holds."""
        if not holds:
            raise WrongAnswer(f"step {self._step}: expected {what}")
        print(f"   ok      {what}")


def _short(value: Any) -> str:
    if isinstance(value, str) and (len(value) > 60 or "\n" in value):
        return f"<{value.count(chr(10)) + 1} lines>"
    text = str(value) if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= 150 else text[:147] + "..."
