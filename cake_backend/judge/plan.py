"""What will be run: made after the candidate is sealed, with seeds that nobody knew before."""

from __future__ import annotations

import hashlib
import json
import random
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cake_backend.task import AxisDomain, Shape, Task

SEED_BITS = 48
TRIES = 50  # draws for each held-out shape, for candidates that take few shapes

Covers = Callable[[Shape], bool]


def _all(shape: Shape) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller wants of a run. `shapes` and `distributions` restrict by name; `heldout` is how many shapes are drawn fresh.

    `bench` restricts the shapes that are there to be timed, and leaves the small and the drawn ones as they are.
    """

    timing: bool = True
    cycles: bool = True
    rounds: int = 24
    heldout: int = 2
    repeats: int = 2
    shapes: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    bench: tuple[str, ...] = ()
    allow_undecided: bool = True
    run_timeout: float = 240.0
    lease_timeout: float = 600.0
    compile_timeout: float = 120.0
    policies: int = 4
    simulate_budget: float = 60.0

    @staticmethod
    def of(values: Mapping[str, Any] | None) -> Options:
        """Options from plain values; TypeError or ValueError for names or values that are none."""
        given = dict(values or {})
        if unknown := set(given) - set(Options.__slots__):
            raise ValueError(f"unknown option `{min(unknown)}`")
        for name in ("shapes", "distributions", "bench"):
            if name in given:
                given[name] = tuple(given[name])
        return Options(**given)


@dataclass(frozen=True, slots=True)
class Case:
    """One set of data: a shape, a distribution and a seed. `heldout` cases are reported by outcome only."""

    id: str
    shape: Shape
    distribution: str
    seed: int
    timed: bool = False
    heldout: bool = False
    repeats: int = 2

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id, "shape": self.shape.name, "axes": dict(self.shape.axes), "kind": self.shape.kind,
            "distribution": self.distribution, "seed": self.seed, "timed": self.timed, "heldout": self.heldout,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """The cases of one run in order, small ones first, so that a broken candidate is found out before large data is made."""

    cases: tuple[Case, ...]
    poison: int
    seal: str

    def to_json(self) -> dict[str, Any]:
        return {"cases": [c.to_json() for c in self.cases], "poison": self.poison, "seal": self.seal}


def plan_hash(task: Task, options: Options) -> str:
    """Identity of a plan without its seeds: the same task, shapes and options give the same hash."""
    shapes = [(s.name, sorted(s.axes.items()), s.kind) for s in task.shapes]
    text = json.dumps([task.name, shapes, [d.name for d in task.distributions], repr(options)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def wanted_shapes(task: Task, params: Mapping[str, Any], options: Options) -> list[Shape]:
    """The task's shapes that the parameters leave and the caller named (all, if none); TaskError for a name that is none."""
    for name in (*options.shapes, *options.bench):
        task.shape(name)
    asked = [s for s in task.specialised(params) if not options.shapes or s.name in options.shapes]
    return [s for s in asked if s.kind != "bench" or not options.bench or s.name in options.bench]


def make_plan(
    task: Task, params: Mapping[str, Any], options: Options, *, seal: str, rng: random.Random | None = None, covers: Covers = _all
) -> Plan:
    """Choose cases for a sealed candidate (`seal` is its hash), whose compile-time parameters and assumptions (`covers`) exclude some shapes.

    Every distribution runs on the first small shape; every other shape gets the first distribution and one more in turn.
    """
    draw = rng or random.Random(secrets.randbits(128))
    shapes = [s for s in wanted_shapes(task, params, options) if covers(s)]
    names = [d.name for d in task.distributions if not options.distributions or d.name in options.distributions]
    for name in options.distributions:
        task.distribution(name)
    if options.shapes == ():
        shapes += drawn_shapes(task, params, options.heldout, draw, covers)
    order = {"sim": 0, "edge": 1, "check": 2, "heldout": 3, "bench": 4}
    shapes.sort(key=lambda s: (empty(task, s), order[_kind(s)]))  # an empty shape tries no data, so it must not be the first
    cases: list[Case] = []
    for i, shape in enumerate(shapes):
        kind = _kind(shape)
        if kind == "bench":
            chosen = names[:1]
        elif i == 0:
            chosen = names
        else:
            chosen = list(dict.fromkeys((names[0], names[i % len(names)])))
        for name in chosen:
            cases.append(
                Case(
                    id=f"c{len(cases):03d}",
                    shape=shape,
                    distribution=name,
                    seed=draw.getrandbits(SEED_BITS),
                    timed=kind == "bench" and options.timing,
                    heldout=kind == "heldout",
                    repeats=options.repeats,
                )
            )
    return Plan(tuple(cases), draw.getrandbits(12), seal)


def empty(task: Task, shape: Shape) -> bool:
    """Whether a shape leaves no output element to compute."""
    layouts = task.layouts(shape.axes)
    return all(0 in layouts[n].shape for n, t in task.tensors.items() if t.mode != "in")


def _kind(shape: Shape) -> str:
    return "heldout" if shape.name.startswith("heldout-") else shape.kind


def drawn_shapes(task: Task, params: Mapping[str, Any], count: int, draw: random.Random, covers: Covers = _all) -> list[Shape]:
    """Shapes from the task's domain, near the edges as often as in the middle; axes that parameters fix keep that value.

    Fewer than `count` where the candidate takes few of what is drawn, or the fixed values lie outside the domain.
    """
    if set(task.domain) != set(task.axes):
        return []
    fixed = {a: v for a, v in params.items() if a in task.axes and a not in task.scalars and isinstance(v, int)}
    if any(not _inside(task.domain[a], v) for a, v in fixed.items()):
        return []
    shapes: list[Shape] = []
    for _ in range(count * TRIES):
        if len(shapes) == count:
            break
        axes = {a: fixed.get(a, _extent(d, draw)) for a, d in task.domain.items()}
        shape = Shape(f"heldout-{len(shapes)}", axes, "check")
        if covers(shape):
            shapes.append(shape)
    return shapes


def _inside(domain: AxisDomain, value: int) -> bool:
    return domain.low <= value <= domain.high and value % domain.multiple == 0


def _extent(domain: AxisDomain, draw: random.Random) -> int:
    least, most = -(-domain.low // domain.multiple), domain.high // domain.multiple
    if draw.random() < 0.5:
        value = draw.randint(least, most)
    else:  # one step around a multiple of 64, where tails are decided
        step = max(1, 64 // domain.multiple)
        value = min(most, max(least, draw.randint(least // step, most // step) * step + draw.choice((-1, 0, 1))))
    return value * domain.multiple
