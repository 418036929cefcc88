"""Loops that the goals of all loops together leave short: longer at later tiles only, or a factor of another loop's length."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from cake_verify.analyses import trips
from cake_verify.analyses.count_text import compiled, texts
from cake_verify.analyses.goals import Goal
from cake_verify.analyses.tiling import tile_source

if TYPE_CHECKING:
    from cake_verify.analyses.settings import Setting, Settings

TILES = 64
"""Tiles of a walk at which a loop's length is looked at."""
LONGEST = 64
"""Iterations that are asked for at the last tile."""


def _once(loop: trips.Loop) -> bool:
    """Whether a loop goes over what is left behind whole tiles, `lm.range(N // 128, lm.cdiv(N, 128))`, or behind pairs of rounds, `lm.range(n // 2 * 2, n)`: once at most."""
    lo, hi = loop.lo, loop.hi
    for half, two in (lo.args, lo.args[::-1]) if lo.op == "mul" else ():
        if two.attrs.get("value") == 2 and half.op == "floordiv" and half.args[1].attrs.get("value") == 2 and trips.canonical(half.args[0]) == trips.canonical(hi):
            return True
    return lo.op == "floordiv" and hi.op == "cdiv" and all(trips.canonical(a) == trips.canonical(b) for a, b in zip(lo.args, hi.args, strict=True))


def later(search: Settings, lost: list[trips.Loop], found: list[Setting]) -> list[trips.Loop]:
    """The loops of `lost` that no tile of a setting gives a second iteration; settings are added to `found` where arguments for one exist."""
    out = []
    for loop in lost:
        if _once(loop):
            continue
        s = search.scheduler
        if s is None or s.kind == "grouped":
            out.append(loop)
            continue
        (text,) = texts(search.program, [trips.lengths(search.program, loop)])
        assert text is not None  # what is not known is in `search.unknown`
        (length,) = compiled([f"max(0, {', '.join(text)})"])
        if any(n.op == "field" for e in (loop.lo, loop.hi) for n in e.parts()) and any(length({**_environment(search, x), "tile": tile})[0] > 1 for x in found for tile in _tiles(search, x)):
            continue
        setting = _longer(search, length)
        if setting is None:
            out.append(loop)
        else:
            found.append(setting)
    return out


def _environment(search: Settings, setting: Setting) -> dict[str, Any]:
    return {**search.ones, **setting.args, "ld": search.environment({n: v[0] for n, v in search.candidates.items()})["ld"]}


def _tiles(search: Settings, setting: Setting) -> list[dict[str, int]]:
    """The tiles that a setting's first CTA gets, by field."""
    s = search.scheduler
    assert s is not None
    return [dict(zip(s.fields, t, strict=True)) for t in islice(tile_source(search.program, setting, search.prefix)(s.name, 0), TILES)]


def _longer(search: Settings, length: Any) -> Setting | None:
    """A setting whose last tile gives a loop iterations enough, on one CTA that takes every tile; None where the arguments tried give it none."""
    s = search.scheduler
    assert s is not None and search.counts is not None
    wanted = min(search.window, LONGEST)
    best: tuple[float, dict[str, int], int, tuple[int, ...]] | None = None
    for first, more in ((_least, ()), (_most, ()), (_least, (2, 4))):  # from the least alone, a length that needs two arguments at once is not come to
        choice = first(search)
        for _ in range(2):
            for name, values in search.candidates.items():
                for value in (*values, *(k * max(values) for k in more)):  # a share of a tile's rounds comes to two where the tile has several
                    trial = {**choice, name: value}
                    got = search.profile(trial)
                    if got is None or not 0 < got[0] <= TILES:
                        continue
                    env = search.environment(trial)
                    env["tile"] = last_tile(search, env)
                    n = length(env)[0]
                    distance = abs(n - wanted) + (1000 if n < 2 else 0) + 0.01 * got[0]
                    if best is None or distance < best[0]:
                        best = distance, trial, got[0], got[1]
            if best is not None:
                choice = best[1]
        if best is not None and best[0] < 1000:
            break
    if best is None or best[0] >= 1000:
        return None
    return search.setting(Goal(best[2], 2), best[1], best[3], best[2], last=True)


def last_tile(search: Settings, env: dict[str, Any]) -> dict[str, int]:
    """The fields of the tile that is last along every axis."""
    assert search.scheduler is not None and search.counts is not None
    return {f: n - 1 for f, n in zip(search.scheduler.fields, search.counts(env), strict=True)}


def _least(search: Settings) -> dict[str, int]:
    return {n: values[0] for n, values in search.candidates.items()}


def _most(search: Settings) -> dict[str, int]:
    """The greatest arguments, one after the other, that leave no more tiles than are walked."""
    choice = _least(search)
    for name, values in search.candidates.items():
        for value in sorted(values, reverse=True):
            got = search.profile({**choice, name: value})
            if got is not None and 0 < got[0] <= TILES:
                choice[name] = value
                break
    return choice
