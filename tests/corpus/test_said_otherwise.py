"""Schedules of the corpus, spelled in another way, are judged as they are: each in one of the ways, in turn."""

import pytest

from bench.verify.cases import CASES
from bench.verify.said_otherwise import WAYS, verdict

PAIRS = [(name, way) for i, name in enumerate(CASES) for k, way in enumerate(WAYS) if i % len(WAYS) == k]


@pytest.mark.parametrize(("name", "way"), PAIRS, ids=[f"{n}: {w}" for n, w in PAIRS])
def test_a_verdict_does_not_depend_on_the_spelling(name: str, way: str) -> None:
    _, found = verdict(CASES[name], way)
    assert found.verdict == "pass", [(d.code, d.span.line, d.message) for d in found.diagnostics]
