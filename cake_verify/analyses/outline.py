"""What a search for settings asks for some hundred times, as one function: how many tiles arguments give, and how long every loop is then."""

from __future__ import annotations

from collections.abc import Sequence

from cake_ir.dtypes import DTYPES
from cake_ir.program import Expr, Program, Scheduler
from cake_ir.types import ScalarT
from cake_verify.analyses import trips
from cake_verify.analyses.count_text import texts


def outline(program: Program, scheduler: Scheduler | None, assumed: Sequence[Expr], lengths: Sequence[Sequence[Expr]]) -> str:
    """The text of (cluster tiles, trips of every loop, from its `lengths`), or of None where an assumption fails; empty where arguments alone do not decide it."""
    s = scheduler
    if s is not None and (s.kind == "grouped" or s.raster == "heavy_first"):
        return ""  # sizes of groups, or the place of the first tile
    resolve = trips.resolver_of(program, "")
    asked = [resolve(e) for e in s.tiles] if s is not None else []
    kept, tiles, *known = texts(program, [assumed, asked, *lengths])
    if kept is None or tiles is None or None in known:
        return ""
    counts = [f"max(0, {text})" if _whole(e) else f"max(0, int({text}))" for e, text in zip(asked, tiles, strict=True)]
    total = " * ".join([f"-(-{n} // {s.cluster[k]})" if s is not None and k < 2 and s.cluster[k] > 1 else n for k, n in enumerate(counts)] or ["1"])
    each = "".join(["max(0, " + ", ".join(text) + "), " for text in known if text])
    return f"({total}, ({each}))" + (f" if {' and '.join([f'({text})' if e.op in _LOOSE else text for e, text in zip(assumed, kept, strict=True)])} else None" if kept else "")


_LOOSE = frozenset({"or", "select"})
"""Conditions that an `and` would tear apart."""


def _whole(e: Expr) -> bool:
    """Whether a number is an integer by its type."""
    return isinstance(e.type, ScalarT) and DTYPES[e.type.dtype].is_integer


def each_of(program: Program, assumed: Sequence[Expr]) -> list[str]:
    """The text of every assumption that is known, for functions of one at a time."""
    return [text[0] for text in texts(program, [[e] for e in assumed]) if text]


def rounds_of(program: Program, lengths: Sequence[Sequence[Expr]]) -> list[str]:
    """The text of how long each loop is."""
    return [f"max(0, {', '.join(text)})" for text in texts(program, lengths) if text is not None]
