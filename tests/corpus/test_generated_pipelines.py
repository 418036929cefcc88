"""On random pipelines that are correct by construction, verifier and simulator agree, and they agree on what breaks them."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from bench.verify.agree import FAMILIES, broken, broken_disagrees, drawn, good_disagrees
from bench.verify.generate import Shape, case

few = settings(
    max_examples=6, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate],  # shrinking would simulate for minutes
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@given(seed=st.integers(0, 2**32))
@few
def test_a_pipeline_that_is_correct_by_construction_passes_and_simulates_right(family: str, seed: int) -> None:
    c = drawn(family, random.Random(seed))
    assert good_disagrees(c) == "", c


@pytest.mark.parametrize("family", FAMILIES)
@given(seed=st.integers(0, 2**32))
@few
def test_verifier_and_simulator_agree_on_a_pipeline_with_a_mistake(family: str, seed: int) -> None:
    r = random.Random(seed)
    c = drawn(family, r)
    mutant = broken(c, r)
    assume(mutant is not None)
    assert mutant is not None
    assert broken_disagrees(c, mutant) == "", (c, mutant.key)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_makes_texts_that_differ(family: str) -> None:
    r = random.Random(7)
    assert len({drawn(family, r).text() for _ in range(60)}) >= 30


def test_the_generator_makes_texts_that_differ() -> None:
    texts = {case(Shape(stages=s, lag=lag, epilogue=e, persistent=e != "aliased")).text() for s in (2, 3) for lag in (0, 1) for e in ("direct", "staged", "aliased")}
    assert len(texts) == 12
