"""How wrong values follow from right ones: a factor, an offset, or the values of another place.

A relation is told only if it explains nearly all wrong elements to within their tolerance; the simplest one that does wins. It says what to look
for: a scale that was left out, a bias that was added twice, coordinates of another tile, a swizzle on one side only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

EXPLAINED = 0.95
"""Share of the wrong elements that a relation must explain."""
LEAST = 16
"""Wrong elements below which chance explains too much."""
ROWS, COLUMNS = 128, 1024
"""Wrong rows and columns that are looked at."""
SEEN = 2**20
"""Elements that are looked at: of larger outputs, the rows around the first wrong one."""
RUN = 8
"""Elements of one row that make a place known."""
ANCHORS = 24
TILES = (8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class Relation:
    """kind: `zero`, `factor`, `offset`, `transposed` or `moved`; `by`: `all`, `row` or `column` for what shares one number; `text` says it in words."""

    kind: str
    text: str
    by: str = "all"
    numbers: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "by": self.by, "text": self.text, "numbers": self.numbers}


@dataclass(frozen=True, slots=True)
class _Part:
    """The wrong rows and columns of an output: what was found, what belongs there, what is tolerated, and which elements are wrong."""

    got: Array
    ref: Array
    bound: Array
    bad: Array
    rows: Array
    columns: Array

    def explains(self, made: Array) -> bool:
        """Whether `made` is what was found nearly everywhere that is wrong."""
        return bool(_near(self.got, made, self.bound)[self.bad].mean() >= EXPLAINED)


def _near(found: Array, made: Array, bound: Array) -> Array:
    """Where what was found is what a relation makes, within twice the tolerance and a rounding to bf16."""
    return np.asarray(np.abs(found - made) <= 2 * bound + 2.0**-7 * np.abs(made))


def relation(got: Array, ref: Array, bound: Array, bad: Array, rows: Array) -> Relation | None:
    """The relation of wrong elements to right ones; arrays of (rows, columns) in float64, `rows` the true row numbers. None if there is none."""
    wrong: Array = np.asarray(bad & np.isfinite(got) & np.isfinite(ref))
    if int(wrong.sum()) < LEAST or wrong.sum() < EXPLAINED * bad.sum():
        return None
    rows = np.asarray(rows)
    if ref.size > SEEN:
        around = _around(wrong, ref.shape[1])
        got, ref, bound, wrong, rows = got[around], ref[around], bound[around], wrong[around], rows[around]
    r, c = _some(np.asarray(wrong.any(axis=1)), ROWS), _some(np.asarray(wrong.any(axis=0)), COLUMNS)
    cut = np.ix_(r, c)
    part = _Part(got[cut], ref[cut], bound[cut], wrong[cut], rows[r], c)
    if int(part.bad.sum()) < LEAST:
        return None
    with np.errstate(all="ignore"):  # infinities and huge values explain nothing, and say so by comparing unequal
        return _related(part, got, ref, bound, wrong, rows, r)


def _related(part: _Part, got: Array, ref: Array, bound: Array, wrong: Array, rows: Array, r: Array) -> Relation | None:
    if float(np.ptp(part.ref[part.bad])) <= float(part.bound[part.bad].max()):
        return None  # one value everywhere: any relation would fit
    for look in (_zero, _factor, _offset):
        if found := look(part):
            return found
    if int(rows[-1]) - int(rows[0]) + 1 == len(rows) and (found := _transposed(got, ref, bound, wrong, int(rows[0]))):
        return found
    return _moved(got, ref, bound, wrong, rows) or _columns(part, ref[r], bound[r])


def _around(wrong: Array, width: int) -> slice:
    """Neighbouring rows from a little before the first wrong one on, as many as are looked at."""
    first = int(np.flatnonzero(wrong.any(axis=1))[0])
    count = max(TILES[-1], SEEN // width)
    start = max(0, min(first - count // 4, len(wrong) - count)) // TILES[-1] * TILES[-1]
    return slice(start, start + count)


def _some(hit: Array, most: int) -> Array:
    """Places that are hit, at most so many, spread evenly in whole runs of neighbours."""
    places = np.flatnonzero(hit)
    if len(places) <= most:
        return places
    starts = np.linspace(0, len(places) - RUN, most // RUN).astype(int)
    return np.unique(np.concatenate([places[s : s + RUN] for s in starts]))


def _zero(p: _Part) -> Relation | None:
    return Relation("zero", "wrong elements are 0") if p.explains(np.zeros_like(p.got)) else None


def _fitted(p: _Part, fit: Callable[[Array, Array], float], axis: int) -> Array:
    """A number for each row or column, from its wrong elements; NaN where it has none."""
    out = np.full(p.got.shape[axis], np.nan)
    for i in np.flatnonzero(p.bad.any(axis=1 - axis)):
        at = p.bad[i] if axis == 0 else p.bad[:, i]
        line, right = (p.got[i], p.ref[i]) if axis == 0 else (p.got[:, i], p.ref[:, i])
        out[i] = fit(line[at], right[at])
    return out


def _ratio(found: Array, right: Array) -> float:
    """The factor between two lists of numbers, from the larger half of them."""
    large = np.abs(right) >= np.median(np.abs(right))
    return float(np.median(found[large] / right[large]))


def _difference(found: Array, right: Array) -> float:
    return float(np.median(found - right))


def _several(p: _Part, axis: int) -> bool:
    """Whether lines have enough wrong elements for a number of their own to mean something."""
    counts = p.bad.sum(axis=1 - axis)
    return bool(np.median(counts[counts > 0]) >= RUN)


def _factor(p: _Part) -> Relation | None:
    a = _ratio(p.got[p.bad], p.ref[p.bad])
    if np.isfinite(a) and p.explains(a * p.ref):
        return Relation("factor", f"wrong elements are {_named(a)} times what belongs there", "all", {"factor": a})
    return _by_line(p, _ratio, "factor", lambda x, axis: p.ref * (x[:, None] if axis == 0 else x[None, :]))


def _offset(p: _Part) -> Relation | None:
    b = _difference(p.got[p.bad], p.ref[p.bad])
    if p.explains(p.ref + b):
        return Relation("offset", f"wrong elements are off by {b:.4g}", "all", {"offset": b})
    return _by_line(p, _difference, "offset", lambda x, axis: p.ref + (x[:, None] if axis == 0 else x[None, :]))


def _by_line(p: _Part, fit: Callable[[Array, Array], float], kind: str, made: Callable[[Array, int], Array]) -> Relation | None:
    for axis, line in ((0, "row"), (1, "column")):
        if not _several(p, axis):
            continue
        x = _fitted(p, fit, axis)
        if not p.explains(made(x, axis)):
            continue
        numbers = p.rows if axis == 0 else p.columns
        shown = [(int(numbers[i]), float(x[i])) for i in np.flatnonzero(np.isfinite(x))[:3]]
        said = ", ".join(f"{line} {i} by {v:.4g}" for i, v in shown)
        return Relation(kind, f"each {line} is {'multiplied' if kind == 'factor' else 'off'} by a number of its own: {said}", line, {kind: shown})
    return None


_NAMES = {
    "log2(e)": 1.4426950408889634, "ln(2)": 0.6931471805599453, "-log2(e)": -1.4426950408889634, "-ln(2)": -0.6931471805599453, "sqrt(2)": 2**0.5, "1/sqrt(2)": 2**-0.5,
}  # fmt: skip


def _named(a: float) -> str:
    """A factor by the name that it is likely to have: a constant, a whole number or one over it, one over a root of a power of two."""
    known = {**_NAMES, **{str(n): float(n) for n in (-1, 2, -2, 3, 4)}, **{f"1/{n}": 1 / n for n in (2, 3, 4)}}
    for k in range(3, 18):
        known |= {str(2**k): 2.0**k, f"1/{2**k}": 2.0**-k, f"sqrt({2**k})": 2 ** (k / 2), f"1/sqrt({2**k})": 2 ** (-k / 2)}
    name = min(known, key=lambda n: abs(known[n] - a) / abs(known[n]))
    if name == f"{a:.4g}":
        return name
    return f"{name} ({a:.4g})" if abs(known[name] - a) < 4e-3 * abs(a) else f"{a:.4g}"


def _transposed(got: Array, ref: Array, bound: Array, wrong: Array, first: int) -> Relation | None:
    """The whole output, or every square tile of it, with rows and columns exchanged."""
    height, width = ref.shape
    for t in (*TILES, height):
        if t > min(height, width) or height % t or width % t or first % t or (t == height and height != width):
            continue
        made = ref.reshape(height // t, t, width // t, t).transpose(0, 3, 2, 1).reshape(height, width)
        if _near(got, made, bound)[wrong].mean() >= EXPLAINED:
            what = "the output is transposed" if t == height == width else f"every tile of {t} x {t} is transposed"
            return Relation("transposed", what, "all", {"tile": t})
    return None


def _moved(got: Array, ref: Array, bound: Array, wrong: Array, rows: Array) -> Relation | None:
    """Runs of a row that belong elsewhere, each found at one other place only."""
    chunks = ref.shape[1] // RUN
    if not chunks:
        return None
    whole = wrong[:, : chunks * RUN].reshape(len(wrong), chunks, RUN).sum(axis=2) >= RUN - 2
    at = np.argwhere(whole)
    if not len(at):
        return None
    anchors = at[np.linspace(0, len(at) - 1, min(len(at), ANCHORS)).astype(int)]
    places = []
    for r, chunk in anchors:
        c = int(chunk) * RUN
        i, j = _places_of(got[r, c : c + RUN], ref, bound)
        if len(i) == 1:
            places.append((int(rows[r]), c, int(rows[i[0]]), int(j[0])))
    if len(places) < max(2, EXPLAINED * len(anchors)):
        return None
    return _move(places)


def _places_of(run: Array, ref: Array, bound: Array) -> tuple[Array, Array]:
    """Rows and columns at which a run of values belongs."""
    last = ref.shape[1] - RUN + 1
    i, j = np.nonzero(_near(run[0], ref[:, :last], bound[:, :last]))
    for k in range(1, RUN):
        near = _near(run[k], ref[i, j + k], bound[i, j + k])
        i, j = i[near], j[near]
    return i, j


def _move(places: list[tuple[int, int, int, int]]) -> Relation:
    """In words: one distance for all, columns or rows that are exchanged by their bits, or examples."""
    numbers = {"examples": [{"row": r, "column": c, "of_row": i, "of_column": j} for r, c, i, j in places[:4]]}
    (down, right), often = Counter((i - r, j - c) for r, c, i, j in places).most_common(1)[0]
    if often >= EXPLAINED * len(places):
        parts = [f"{abs(n)} {what} {'on' if n > 0 else 'back'}" for n, what in ((down, "rows"), (right, "columns")) if n]
        return Relation("moved", f"wrong places hold what belongs {' and '.join(parts)}", "all", {"rows": down, "columns": right, **numbers})
    for axis, line in ((1, "column"), (0, "row")):
        if any((i - r, j - c)[1 - axis] for r, c, i, j in places):
            continue
        bits = Counter((r ^ i) if axis == 0 else (c ^ j) for r, c, i, j in places)
        if len(bits) == 1:
            return Relation("moved", f"{line}s that differ by {next(iter(bits))} are exchanged", line, {"exclusive or": next(iter(bits)), **numbers})
        if axis == 1 and all(c % RUN == 0 and j % RUN == 0 for _, c, _, j in places):
            said = ", ".join(f"row {r} column {c} holds column {j}" for r, c, _, j in places[:3])
            return Relation("moved", f"chunks of {RUN} elements stand elsewhere in their row: {said}", line, numbers)
        said = ", ".join(f"{line} {(r, c)[axis]} holds {line} {(i, j)[axis]}" for r, c, i, j in places[:3])
        return Relation("moved", f"{line}s stand in each other's place: {said}", line, numbers)
    said = ", ".join(f"({r}, {c}) holds ({i}, {j})" for r, c, i, j in places[:3])
    return Relation("moved", f"values stand in other places: {said} (row, column)", "all", numbers)


def _columns(p: _Part, ref: Array, bound: Array) -> Relation | None:
    """Single columns in each other's place, told by their wrong rows."""
    if len(p.rows) < RUN:
        return None
    places = []
    tried = np.flatnonzero(p.bad.sum(axis=0) >= RUN)
    for k in tried[np.linspace(0, len(tried) - 1, min(len(tried), ANCHORS)).astype(int)] if len(tried) else ():
        at = p.bad[:, k]
        near = _near(p.got[at, k][:, None], ref[at], bound[at])
        hits = np.flatnonzero(near.mean(axis=0) >= EXPLAINED)
        if len(hits) == 1:
            places.append((int(p.rows[0]), int(p.columns[k]), int(p.rows[0]), int(hits[0])))
    return _move(places) if len(places) >= max(2, EXPLAINED * min(len(tried), ANCHORS)) else None
