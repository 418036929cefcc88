"""Every deliberate fault in the examples is found by some adversary, and the first report says what it is."""

from __future__ import annotations

import pytest
from sim_cases import FMHA_CAUSAL, GEMM_WS
from sim_seeded import SEEDED, Seeded

from cake_backend.simulate import SimResult, adversaries

# What the first failing run reports: a deadlock, an access in flight, unfenced bytes, another CTA's rows, or only wrong numbers.
EXPECTED = {
    "release s instead of s.prev()": {"X001"},
    "drop the release after the loop": {"X001"},
    "ab_empty without scope=cluster": {"X004"},
    "drop mma_wait(pending=1)": {"X004"},
    "drop fence_proxy": {"X008"},
    "drop store_wait(pending=1)": {"X004"},
    "drop arrive(v_empty) in the loop": {"X001"},
    "drop arrive(turn)": {"X001"},
    "drop wait(v_full) in the loop": {"X004"},
    "drop store_wait before q_empty": {"X003"},
    "release c_empty before mma_wait": {"X004"},
    "store rows=C": {"X009"},
    "cp_wait(STAGES-1)": {"X004"},
    "drop the sync of the k loop": {"X004", "numbers"},
}


def first_failure(s: Seeded) -> tuple[str, SimResult, set[str]]:
    for policy in adversaries(s.case.program(*s.edits)):
        r = s.case.run(*s.edits, policy=policy)
        if not r.ok:
            return policy.name, r, {r.faults[0].code}
        if s.case.wrong(r):
            return policy.name, r, {"numbers"}
    raise AssertionError("no adversary finds it")


@pytest.mark.parametrize("s", SEEDED, ids=lambda s: f"{s.case.name}: {s.what}")
def test_a_seeded_fault_is_found(s: Seeded) -> None:
    _, r, codes = first_failure(s)
    assert codes <= EXPECTED[s.what]
    for f in r.faults:
        assert f.span.line > 0


def test_a_deadlock_says_who_waits_for_what() -> None:
    s = next(x for x in SEEDED if x.what == "drop the release after the loop")
    _, r, _ = first_failure(s)
    fault = r.faults[0]
    assert "`ab_empty` stage" in fault.message and fault.message.startswith("deadlock: ")
    text = "\n".join(fault.trace)
    assert "of 16 arrivals" in text and "math[0] of CTA" in text and "k=" in text
    assert {b["role"] for b in fault.facts["blocked"]} == {"load", "math"}


def test_a_hazard_names_both_operations_and_the_warp() -> None:
    s = next(x for x in SEEDED if x.what == "drop store_wait(pending=1)" and x.case is GEMM_WS)
    _, r, _ = first_failure(s)
    fault = r.faults[0]
    assert "`smem_c.store`" in fault.message and "`smem_c.tma_store`" in fault.message
    assert fault.related and fault.facts["role"] == "math" and fault.trace


def test_a_policy_that_delays_one_operation_is_needed_for_the_missing_v_wait() -> None:
    s = next(x for x in SEEDED if x.what == "drop wait(v_full) in the loop")
    assert s.case is FMHA_CAUSAL
    assert all(s.case.run(*s.edits, policy=p, seed=n).ok for p in ("canonical", "uniform") for n in range(4))
    assert first_failure(s)[0].startswith("last:")


def test_one_tile_a_cta_hides_what_several_show() -> None:
    """Dropping the store wait in front of q_empty is a race only when another tile follows."""
    s = next(x for x in SEEDED if x.what == "drop store_wait before q_empty")
    from dataclasses import replace

    one = replace(s.case, ctas=1)
    codes = {f.code for p in adversaries(one.program(*s.edits)) for f in one.run(*s.edits, policy=p).faults}
    assert "X004" in codes
