"""Successive halving on simulated clocks: the best is found, ties are kept, the budget holds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from cake_backend.judge.halving import ENOUGH_ROUNDS, affordable, halve, survivors
from cake_backend.judge.statistics import LEAST_ROUNDS


class Bench:
    """Contestants with true times and noise; a race costs a start and so much a round."""

    def __init__(self, truth: dict[str, float], budget: float, noise: float = 0.01, start: float = 1.0, each: float = 0.01) -> None:
        self.truth, self.left, self.noise, self.start, self.each = truth, budget, noise, start, each
        self.seen: dict[str, list[float]] = {n: [] for n in truth}
        self.random = random.Random(7)

    def race(self, names: Sequence[str], rounds: int) -> None:
        self.left -= self.start + self.each * rounds * len(names)
        for n in names:
            if self.truth[n] > 0:
                self.seen[n] += [self.truth[n] * (1 + self.random.gauss(0, self.noise)) for _ in range(rounds)]

    def run(self, keep: int = 3):
        return halve(list(self.truth), self.race, lambda n: self.seen[n], lambda: self.left, keep=keep)


def test_the_fastest_is_found_and_timed_often_enough_with_few_rounds_for_the_rest() -> None:
    bench = Bench({f"v{i}": 1.0 + 0.05 * i for i in range(40)}, budget=100)
    found = bench.run()
    assert found.why == "settled" and found.left[0] == "v0" and len(bench.seen["v0"]) >= LEAST_ROUNDS
    assert len(bench.seen["v39"]) < LEAST_ROUNDS / 2
    sizes = [len(r.names) for r in found.rungs]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == 40 and sizes[-1] <= 12
    assert sum(len(t) for t in bench.seen.values()) < 40 * ENOUGH_ROUNDS / 2


def test_equals_are_kept_together() -> None:
    found = Bench(dict.fromkeys("abcdefgh", 1.0), budget=100, noise=0.02).run()
    assert set(found.left) == set("abcdefgh")


def test_a_budget_that_ends_leaves_what_is_known_in_order() -> None:
    bench = Bench({f"v{i}": 1.0 + 0.1 * i for i in range(16)}, budget=2.5)
    found = bench.run()
    assert found.why == "budget" and found.left[0] == "v0" and bench.left > -2.5
    assert Bench({"a": 1.0}, budget=0).run().why == "budget"


def test_who_fails_is_out_and_nobody_left_says_so() -> None:
    found = Bench({"good": 1.0, "bad": 0.0}, budget=100).run()
    assert found.left == ["good"] and found.rungs[0].dropped == ("bad",)
    assert Bench({"bad": 0.0}, budget=100).run().why == "nobody"
    assert halve([], lambda n, r: None, lambda n: [], lambda: 1.0).why == "nobody"


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=4), st.floats(0.1, 10), min_size=1, max_size=20), st.floats(0, 50), st.integers(1, 5))
def test_it_always_ends_and_never_starts_a_rung_without_budget(truth: dict[str, float], budget: float, keep: int) -> None:
    bench = Bench(truth, budget)
    started: list[float] = []
    race = bench.race

    def watched(names: Sequence[str], rounds: int) -> None:
        started.append(bench.left)
        race(names, rounds)

    bench.race = watched  # type: ignore[method-assign]  # to look at what is left when a rung starts
    found = bench.run(keep)
    assert all(left > 0 for left in started) and len(started) <= 8
    assert set(found.left) <= set(truth)


def test_pieces() -> None:
    assert affordable(10, 4, 0.5, 1.0, 9.0) == 4 and affordable(3, 4, 0.5, 1.0, 99.0) == 3 and affordable(3, 4, 0.0, 1.0, 0.5) == 0
    times = {"a": [1.0, 1.1], "b": [1.05, 1.2], "c": [1.15, 1.3], "d": [2.0, 2.1]}
    assert survivors(["a", "b", "c", "d"], lambda n: times[n], 2) == ["a", "b", "c"]
    assert survivors(["a"], lambda n: times[n], 2) == ["a"]
