"""Loops that a reading can move forward: what `range` and `tiles` are in the compiled role programs of a timing walk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


class Loop:
    """One running loop of one member: an iterator whose position the reading may advance.

    `at` is the position of the next value, `end` one past the last position; both count iterations from 0.
    """

    __slots__ = ("at", "end", "owner", "start", "values")

    def __init__(self, owner: LoopStack, start: int, end: int, values: Sequence[tuple[int, ...]] | None = None) -> None:
        self.owner = owner
        self.start = start
        self.at = 0
        self.end = end
        self.values = values

    def __iter__(self) -> Iterator[Any]:
        self.owner.stack.append(self)
        return self

    def __next__(self) -> Any:
        if self.at >= self.end:
            self.owner.stack.remove(self)
            raise StopIteration
        at = self.at
        self.at = at + 1
        self.owner.turned.append(self)
        return self.start + at if self.values is None else self.values[at]

    @property
    def shape(self) -> tuple[int, int, int]:
        """What makes two loops at the same place of a program alike: first value, position, end."""
        return (self.start, self.at, self.end)


class LoopStack:
    """The loops that one member is inside of, outermost first; `turned` are the loops that have begun an iteration since."""

    __slots__ = ("stack", "turned")

    def __init__(self) -> None:
        self.stack: list[Loop] = []
        self.turned: list[Loop] = []

    @property
    def turn(self) -> int:
        """The iteration of the innermost loop, from 0; 0 outside of loops."""
        return self.stack[-1].at - 1 if self.stack else 0


class LoopMaker:
    """Makes loops for whichever member is executing: stands in for `range` in the compiled roles.

    With `first_only` a loop runs at most once, which is how the addresses of a first iteration are read off.
    """

    def __init__(self, first_only: bool = False) -> None:
        self.current = LoopStack()
        self.first_only = first_only

    def __call__(self, lo: int, hi: int) -> Loop:
        trips = max(0, int(hi) - int(lo))
        return Loop(self.current, int(lo), min(trips, 1) if self.first_only else trips)

    def over(self, values: Sequence[tuple[int, ...]]) -> Loop:
        """A loop over tiles."""
        return Loop(self.current, 0, len(values), values)
