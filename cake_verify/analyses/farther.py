"""Arguments farther away, where those that the text suggests break an assumption or leave a loop short.

`lm.assume(K >= 8192)` is met by no small number of blocks, and `lm.min(K // 64, M // 64)` grows only where both do: then values are looked for
that keep every assumption, and by doubling and halving the least ones with which a loop runs long enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import TYPE_CHECKING

from cake_ir.derive.structure import stated
from cake_ir.program import Expr
from cake_verify.analyses import ranges, trips
from cake_verify.analyses.count_text import compiled, texts
from cake_verify.analyses.trips import NO_VALUE

if TYPE_CHECKING:
    from cake_verify.analyses.settings import Settings

Choice = dict[str, int]
COMBINED = 400
"""Combinations of arguments that are tried where assumptions tie several."""
DOUBLINGS = 26
SLIDES = 6
"""Doublings of what lengths have in common, where no number of them gives a whole window."""
SUGGESTED = 2000
"""Values of one argument that remainders suggest: each of them gives two more for every value there was."""


def go_farther(search: Settings, reached: list[Choice], most: list[int]) -> bool:
    """Give a search that came too short more candidates and places to start from; whether there are any."""
    short = [i for i, n in enumerate(most) if n < min(search.stages + 2, _bound(search, i))]
    if reached and not short:
        return False
    start = reached[0] if reached else _start(search)
    if start is None:
        return False
    found = [] if reached else [start]
    for i in short:
        found += _longer(search, start, i, most[i])
    search.starts += found
    for choice in found:
        for name, value in choice.items():
            values = search.candidates[name]
            search.candidates[name] = list(dict.fromkeys([*values, value, value + search.units.get(name, 1)]))
    return bool(found)


def _bound(search: Settings, i: int) -> float:
    """Iterations that a loop cannot exceed, whatever the arguments."""
    loop = search.loops[i]
    high, low = (ranges.of(search.program, loop.role, e) for e in (loop.stmt.hi, loop.stmt.lo))  # type: ignore[arg-type]  # counted loops have bounds
    return high.hi - low.lo


# ------------------------------------------------------------------ keeping assumptions


def _start(search: Settings) -> Choice | None:
    """Some arguments that keep every assumption."""
    values = {name: _allowed(search, name) for name in search.candidates}
    raised = _raised(search, {n: v[0] for n, v in values.items() if v})
    for name, value in raised.items():
        values[name] = list(dict.fromkeys([value, *values[name]]))
    for combined in islice(product(*(v[:6] for v in values.values())), COMBINED):
        choice = dict(zip(values, combined, strict=True))
        if search.profile(choice) is not None:
            for name, allowed in values.items():
                search.candidates[name] = list(dict.fromkeys([*allowed, *search.candidates[name]]))
            return choice
    return None


def _raised(search: Settings, least: Choice) -> Choice:
    """The least values, of which comparisons with other arguments (`ROOM >= K + 64`, `A < B`) have raised some until they hold."""
    tied = [(c.op, *trips.linear(Expr("sub", c.args))) for c in _assumed(search) if c.op in ("lt", "le", "gt", "ge")]
    signed = [(1, constant - (op == "gt"), terms) if op in ("gt", "ge") else (-1, constant + (op == "lt"), terms) for op, constant, terms in tied if len(terms) > 1 and terms.keys() <= least.keys()]
    choice = dict(least)
    for _ in range(len(signed) * len(signed)):
        missing = next(((s, terms, d) for s, constant, terms in signed if (d := s * (constant + sum([n * choice[x] for x, n in terms.items()]))) < 0), None)
        if missing is None:
            break
        sign, terms, by = missing
        name = next((x for x, n in terms.items() if sign * n > 0), None)
        if name is None:
            break
        raised, unit = choice[name] - by // abs(terms[name]), search.units.get(name, 1)
        choice[name] = raised + -raised % unit
    return choice


def _allowed(search: Settings, name: str) -> list[int]:
    """Values of one argument that keep what is assumed of it alone, the candidates and those that the assumptions themselves suggest."""
    alone = [c for c in _assumed(search) if {str(n.attrs["name"]) for n in c.parts() if n.op == "param"} == {name}]
    values = list(search.candidates[name])
    for c in alone:
        if c.op in ("lt", "le", "gt", "ge", "eq"):
            constant, terms = trips.linear(Expr("sub", c.args))
            factor = terms.get(name, 0)
            if factor:
                edge, unit = -constant // factor, search.units.get(name, 1)
                edge += -edge % unit
                values += [edge, edge + unit, *(edge + v for v in search.candidates[name])]
    for modulus, rest in _remainders(alone):
        values = list(dict.fromkeys([w for v in values for w in (v, v - v % modulus + rest, v - v % modulus + modulus + rest)]))[:SUGGESTED]
    test = _test(search, alone)
    return [v for v in dict.fromkeys(values) if v >= 0 and test({**search.ones, name: v})]


def _remainders(conditions: list[Expr]) -> list[tuple[int, int]]:
    """The (c, r) of conditions `x % c == r`."""
    found = [c.args for c in conditions if c.op == "eq" and c.args[0].op == "mod" and c.args[0].args[1].op == "const" and c.args[1].op == "const"]
    return [(int(x.args[1].attrs["value"]), int(r.attrs["value"])) for x, r in found]  # type: ignore[call-overload]  # integers


def _assumed(search: Settings) -> list[Expr]:
    resolve = trips.resolver_of(search.program, "")
    return [c for a in search.program.assumes for c in stated(resolve(a.cond))]


def _test(search: Settings, conditions: list[Expr]) -> Callable[[dict[str, float]], bool]:
    holds = compiled([text[0] for text in texts(search.program, [[c] for c in conditions]) if text])[0]
    return lambda env: all(holds(env))


# ------------------------------------------------------------------ running longer


def _longer(search: Settings, start: Choice, i: int, so_far: int) -> Iterator[Choice]:
    """Arguments with which a loop runs through a window: one of them more than at the start, or several together; where the text holds the loop
    shorter (the keys of a sliding window), those with which it runs longest."""
    names = list(search.candidates)
    wanted = min(search.window, _bound(search, i))
    alike = math.lcm(*(_block(search, n) for n in names)) if names else 1
    free = [n for n in names if search.profile({**start, n: start[n] + 64 * _block(search, n)}) is not None]
    ways = [*({n: search.units.get(n, 1)} for n in names), *({n: _block(search, n) for n in some} for some in (names, free)), dict.fromkeys(names, alike)]
    for steps in ways:

        def at(t: int, steps: dict[str, int] = steps) -> Choice:
            return {**start, **{n: start[n] + t * step for n, step in steps.items()}}

        high = next((1 << k for k in range(DOUBLINGS) if _trips(search, at(1 << k), i) >= wanted), 0)
        if not high:
            longest, k = max((_trips(search, at(1 << k), i), -k) for k in range(SLIDES))
            choice = at(1 << -k)
            if longest > so_far and all(choice[n] % size == 0 for n, (size, _) in search.blocks.items()) and search.profile(choice) is not None:
                so_far = longest
                yield choice
            continue
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _trips(search, at(middle), i) >= wanted else (middle, high)
        for choice in (at(high), *_rounded(search, at(high), list(steps))):
            if search.profile(choice) is not None:
                yield choice


def _block(search: Settings, name: str) -> int:
    return math.lcm(search.units.get(name, 1), search.blocks.get(name, (1, 1))[0])


def _rounded(search: Settings, choice: Choice, names: list[str]) -> Iterator[Choice]:
    """The same with whole blocks of what has grown, and with the remainders that are assumed."""
    yield {**choice, **{n: choice[n] + -choice[n] % _block(search, n) for n in names}}
    for name in names:
        for modulus, rest in _remainders([c for c in _assumed(search) if any(n.op == "param" and n.attrs["name"] == name for n in c.parts())]):
            yield {**choice, name: choice[name] + (rest - choice[name]) % modulus}


def _trips(search: Settings, choice: Choice, i: int) -> int:
    """Iterations of a loop, assumptions left aside."""
    try:
        env = search.environment(choice)
        _, env["tile"] = search.tiles(env)
        return int(search.trips(env)[i])
    except NO_VALUE:
        return 0


__all__ = ["go_farther"]
