"""mbarriers count arrivals and bytes and flip a parity bit; named barriers count warps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_backend.simulate.barriers import MBarrier, NamedBarrier, OverArrival


def barrier(count: int) -> MBarrier:
    return MBarrier([], "b", 0, count, count)


def test_a_phase_ends_with_its_last_arrival_and_the_count_starts_again() -> None:
    b = barrier(2)
    assert not b.passed(0) and b.passed(1)
    b.arrive()
    assert not b.passed(0)
    b.arrive()
    assert b.passed(0) and not b.passed(1) and b.pending == 2


def test_bytes_hold_a_phase_open_and_may_land_before_they_are_expected() -> None:
    b = barrier(1)
    b.expect(100)
    assert not b.passed(0)
    b.complete(60)
    b.complete(40)
    assert b.passed(0)
    b.complete(50)
    assert not b.passed(1)
    b.expect(50)
    assert b.passed(1)


def test_an_arrival_too_many_in_a_phase_held_open_by_bytes_is_refused() -> None:
    b = barrier(1)
    b.expect(16)
    with pytest.raises(OverArrival):
        b.arrive()
    with pytest.raises(OverArrival):
        b.expect(16)
    with pytest.raises(OverArrival):
        barrier(4).arrive(5)


def test_parity_cannot_tell_a_phase_from_the_one_two_later() -> None:
    b = barrier(1)
    b.arrive()
    assert b.passed(0)
    b.arrive()
    assert not b.passed(0)


@given(st.integers(1, 6), st.integers(0, 40))
@settings(max_examples=100, deadline=None)
def test_the_parity_counts_complete_phases_modulo_two(count: int, arrivals: int) -> None:
    b = barrier(count)
    for _ in range(arrivals):
        b.arrive()
    assert b.flips == arrivals // count and b.parity == b.flips & 1


def test_a_named_barrier_releases_whole_generations() -> None:
    n = NamedBarrier([], "n", 3)
    first = n.arrive()
    assert first == n.arrive() and not n.passed(first)
    n.arrive()
    assert n.passed(first)
    assert n.arrive() == first + 1 and not n.passed(first + 1)
