"""Ground truth that a run gives where the machine's state was thought impossible."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.truth import judge

LOADED = """                r = lm.tmem_load(tm0, form="rows")
                lm.tmem_wait("ld")
"""
CHANGED = [
    ("tcgen05_pair_halves", LOADED, LOADED.partition("                lm.tmem_wait")[0], "X005"),
    ("layernorm_backward", "shape=(CREW,), dtype=lm.f32, stage=2)\n    second", 'shape=(CREW,), dtype=lm.f32, stage=2, swizzle="128b")\n    second', "X015"),
]


@pytest.mark.parametrize(("name", "old", "new", "code"), CHANGED, ids=[f"{n}: {c}" for n, _, _, c in CHANGED])
def test_a_run_ends_with_a_finding(name: str, old: str, new: str, code: str) -> None:
    text = CASES[name].text()
    assert text.count(old) == 1
    truth = judge(text.replace(old, new), name, most=1)
    assert (truth.state, truth.kind) == ("harmful", code), truth
