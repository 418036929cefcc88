"""`rank`: candidates into groups that the model can tell apart, and a choice for a budget of GPU runs.

Two candidates differ only if they do so under every constant set, by more than the materiality; everything else is a tie, and no tie is
broken by a name or an id. What the model does not cover is listed with its reason and still gets a share of the runs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cake_backend.cost.predict import predict
from cake_backend.cost.prediction import Prediction
from cake_ir.canonical import content_hash, distance, fingerprint
from cake_ir.program import Program

MATERIALITY = 0.03
CLIFF = 0.10
NEAR = 0.3
EXPLORE = 0.2


@dataclass(frozen=True, slots=True)
class Dropped:
    """A candidate that is not worth a run: beaten by `against` under every constant set, by `least` at the least."""

    id: str
    against: str
    least: float
    reason: str


@dataclass(frozen=True, slots=True)
class Pick:
    """One run of the budget: what to run, why, and which design it stands for."""

    id: str
    why: str
    design: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answer of `rank`. `groups` hold ids in no particular order, the fastest group first; `last` sorts behind all groups.

    `designs` are clusters of candidates alike in structure; `decisive` says of each candidate which ones it certainly beats.
    """

    device: str
    groups: tuple[tuple[str, ...], ...]
    last: dict[str, str]
    dropped: tuple[Dropped, ...]
    withheld: dict[str, tuple[str, str]]
    duplicates: dict[str, str]
    designs: tuple[tuple[str, ...], ...]
    decisive: dict[str, tuple[str, ...]]
    predictions: dict[str, Prediction]
    order: tuple[str, ...] = field(default=())

    def choose(self, budget: int, seed: int = 0) -> tuple[Pick, ...]:
        """What to run with `budget` runs: the best of each design, and at least a fifth (one, if there are two) for what is not known.

        Equal candidates are drawn with `seed`, so that neither name nor place in the list decides.
        """
        if budget < 1:
            return ()
        rng = random.Random(seed)
        gone = {d.id for d in self.dropped}
        middling = {i: ("middling", "its group is not the first") for group in self.groups[1:] for i in group if i not in gone}
        open_ = self.withheld or middling
        unknown = sorted(open_)
        rng.shuffle(unknown)
        out: list[Pick] = []
        known = [[i for i in group if i not in gone] for group in self.groups]
        for group in known:
            group.sort()
            rng.shuffle(group)
        ranked = [i for group in known for i in group]
        explore = min(len(unknown), max(1, round(EXPLORE * budget))) if budget > 1 or not ranked else 0
        design = {i: n for n, members in enumerate(self.designs) for i in members}
        seen: set[int] = set()
        for passes in (True, False):  # one of each design first, then variants
            for i in ranked:
                if len(out) >= budget - explore:
                    break
                if (design[i] in seen) != passes and all(p.id != i for p in out):
                    seen.add(design[i])
                    out.append(Pick(i, "best of its design" if passes else "variant of a design already chosen", design[i]))
        spread = sorted(unknown, key=lambda i: design[i] in seen)  # designs not seen so far first
        for i in spread[: budget - len(out)]:
            out.append(Pick(i, f"exploration: {open_[i][0]}, {open_[i][1]}", design[i]))
        for i in ranked:
            if len(out) < budget and all(p.id != i for p in out):
                out.append(Pick(i, "variant of a design already chosen", design[i]))
        return tuple(out)

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        return {
            "label": "predicted",
            "device": self.device,
            "groups": [{"rank": n, "tied": sorted(group)} for n, group in enumerate(self.groups, 1)],
            "last": self.last,
            "dropped": [{"id": d.id, "against": d.against, "least": round(d.least, 4), "reason": d.reason} for d in self.dropped],
            "withheld": {i: {"code": c, "reason": r} for i, (c, r) in self.withheld.items()},
            "duplicates": self.duplicates,
            "distinct_designs": len(self.designs),
            "designs": [sorted(d) for d in self.designs],
            "decisive_against": {i: sorted(ids) for i, ids in self.decisive.items()},
            "coverage": round(1 - len(self.withheld) / max(1, len(self.predictions)), 3),
            "predictions": {i: p.to_json() for i, p in self.predictions.items()},
        }


def rank(candidates: Sequence[tuple[str, Program, Any]], bindings: Mapping[str, Any], *, device: str = "H200-SXM",
         materiality: float = MATERIALITY, extents: Mapping[tuple[str, int], int] | None = None) -> Ranking:  # fmt: skip
    """Rank candidates given as (id, program, build or None) for one set of arguments.

    `materiality` is the relative difference below which two times are equal for the user (at least the device's run-to-run spread).
    Raises `UnknownDevice`, and `ValueError` for two candidates of one id.
    """
    if len({i for i, _, _ in candidates}) != len(candidates):
        raise ValueError("two candidates have the same id")
    first_of: dict[tuple[str, str], str] = {}
    duplicates: dict[str, str] = {}
    predictions: dict[str, Prediction] = {}
    prints = {}
    for i, program, build in candidates:
        prints[i] = fingerprint(program)
        twin = first_of.setdefault((content_hash(program), "spec" if build is None else "compiled"), i)
        if twin != i:
            duplicates[i] = twin
        predictions[i] = predict(program, bindings, device=device, build=build, extents=extents)
    withheld = {i: (p.withheld[0].code, p.withheld[0].text) for i, p in predictions.items() if not p.covered and not p.last}
    last = {i: p.last for i, p in predictions.items() if p.last}
    covered = [i for i in predictions if i not in withheld and i not in last]
    compared = (*covered, *last)
    decisive = {i: tuple(j for j in compared if j != i and certain(predictions[i], predictions[j], materiality)) for i in covered}
    groups = _groups(covered, decisive)
    return Ranking(
        device, groups, last, _cliffs(covered, predictions), withheld, duplicates, _designs(prints), decisive, predictions,
        tuple(i for g in groups for i in g) + tuple(last),
    )  # fmt: skip


def certain(a: Prediction, b: Prediction, margin: float) -> bool:
    """Whether `a` is faster than `b` by more than `margin` under every constant set: both share the constants, so errors cancel."""
    return _least_gain(a, b) > margin


def _least_gain(a: Prediction, b: Prediction) -> float:
    if not a.corners or not b.corners:
        return 0.0
    return min(b.corners[c] / a.corners[c] for c in a.corners) - 1.0


def _groups(ids: Iterable[str], decisive: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Layers of the order: a group holds whatever nothing left is certainly faster than."""
    left, groups = list(ids), []
    while left:
        top = [i for i in left if not any(i in decisive[j] for j in left)]
        groups.append(tuple(top))
        left = [i for i in left if i not in top]
    return tuple(groups)


def _cliffs(ids: Iterable[str], predictions: Mapping[str, Prediction]) -> tuple[Dropped, ...]:
    ids = list(ids)
    out = []
    for i in ids:
        gains = {j: _least_gain(predictions[j], predictions[i]) for j in ids if j != i}
        best = max(gains, key=lambda j: gains[j], default=None)
        if best is not None and gains[best] > CLIFF:
            p = predictions[i]
            out.append(Dropped(i, best, gains[best], f"at least {gains[best]:.0%} slower than `{best}` under every constant set, bound by {p.binding}"))
    return tuple(out)


def _designs(prints: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Single-linkage clusters of programs whose fingerprints are near."""
    clusters: list[list[str]] = []
    for i, own in prints.items():
        near = [c for c in clusters if any(distance(own, prints[j]) <= NEAR for j in c)]
        merged = [j for c in near for j in c] + [i]
        clusters = [c for c in clusters if c not in near] + [merged]
    return tuple(tuple(c) for c in clusters)
