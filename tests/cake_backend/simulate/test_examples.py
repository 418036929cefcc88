"""The six examples agree with float64 oracles, and no interleaving changes a bit or meets a fault."""

from __future__ import annotations

import pytest
from sim_cases import CASES, FUZZED, GEMM_WS, Case

from cake_backend.simulate import adversaries


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_an_example_agrees_with_its_oracle(case: Case) -> None:
    r = case.run()
    assert r.ok, [(f.code, f.message, f.trace) for f in r.faults]
    assert not case.wrong(r)
    assert r.seconds < 3


@pytest.mark.parametrize("case", FUZZED, ids=lambda c: c.name)
def test_no_interleaving_of_an_example_meets_a_fault_or_changes_a_bit(case: Case) -> None:
    want = case.run().outputs
    for seed, policy in enumerate(adversaries(case.program())):
        r = case.run(policy=policy, seed=seed)
        assert r.ok, (policy.name, seed, [(f.code, f.message, f.trace) for f in r.faults])
        assert all(r.outputs[n].tobytes() == want[n].tobytes() for n in want), (policy.name, seed)


def test_equal_calls_give_equal_runs() -> None:
    a, b = (GEMM_WS.run(policy="uniform", seed=7) for _ in range(2))
    assert a.events == b.events and a.outputs["C"].tobytes() == b.outputs["C"].tobytes()
    assert GEMM_WS.run(policy="uniform", seed=8).events != a.events


def test_arguments_are_copied_not_changed() -> None:
    before = GEMM_WS.tensors["C"].tobytes()
    GEMM_WS.run()
    assert GEMM_WS.tensors["C"].tobytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_many_seeds_of_every_adversary_find_nothing(case: Case) -> None:
    want = case.run().outputs
    for policy in adversaries(case.program()):
        for seed in range(100, 106):
            r = case.run(policy=policy, seed=seed)
            assert r.ok, (policy.name, seed, [(f.code, f.message) for f in r.faults])
            assert all(r.outputs[n].tobytes() == want[n].tobytes() for n in want), (policy.name, seed)
