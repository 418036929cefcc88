"""Arms that no setting comes to, because the first tile never does: `if page > 0 and page * 64 <= token:` needs a token far along its axis."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from cake_ir.program import Expr
from cake_verify.analyses import read_guards
from cake_verify.analyses.blocks import LENGTH
from cake_verify.analyses.count_text import compiled, texts
from cake_verify.analyses.goals import Goal
from cake_verify.analyses.later_tiles import TILES, last_tile
from cake_verify.analyses.read_numbers import outside_reads
from cake_verify.analyses.trips import NO_VALUE

if TYPE_CHECKING:
    from cake_verify.analyses.setting import Setting
    from cake_verify.analyses.settings import Settings

TRIED = 4_000
"""Combinations of an argument and of what memory holds that are tried for one arm."""
MOST_TILES = 4_096
"""Tiles of a grid of which the last one is walked."""
_FARTHEST = 4_096


def reaching(search: Settings, role: str, cond: Expr, arm: bool) -> Setting | None:
    """A setting whose last tile goes into one arm of a branch on what memory holds; None where the arguments tried give none."""
    s = search.scheduler
    if s is None or s.kind == "grouped" or search.counts is None:
        return None
    (text,) = texts(search.program, [[read_guards.by_some_member(search.program, role, cond, {n.op for n in outside_reads(cond)})]])
    if text is None:
        return None
    (holds,) = compiled([f"bool({text[0]})"])
    for choice in islice(_choices(search, cond), TRIED):
        got = search.profile(choice)
        if got is None or not 0 < got[0] <= (MOST_TILES if s.kind == "grid" else TILES):
            continue
        try:
            env = search.environment(choice)
            env["tile"] = last_tile(search, env)
            if holds(env)[0] is arm:
                return search.setting(Goal(got[0], 2), choice, got[1], got[0], last=True)
        except NO_VALUE:
            continue
    return None


def _choices(search: Settings, cond: Expr) -> Iterator[dict[str, int]]:
    """Arguments one at a time, as large as a constant of the condition asks for or as the text suggests, beside each number that memory may hold."""
    constants = {int(n.attrs["value"]) for n in cond.parts() if n.op == "const" and isinstance(n.attrs["value"], int)}  # type: ignore[call-overload]  # tested here
    first: dict[str, int] = {n: values[0] for n, values in search.candidates.items()}
    read = [n for n in search.candidates if n.startswith(LENGTH)]
    held: list[list[Any]] = [search.candidates[n] for n in read]
    for name in (n for n in search.candidates if not n.startswith(LENGTH)):
        unit = search.units.get(name, 1)
        values = [v + -v % unit for c in sorted(constants) for v in (c + 1, 2 * c + 1) if 0 < v <= _FARTHEST] + search.candidates[name]
        for value, numbers in product(dict.fromkeys(values), product(*held)):
            yield {**first, name: value, **dict(zip(read, numbers, strict=True))}


__all__ = ["reaching"]
