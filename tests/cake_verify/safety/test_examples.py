"""The examples pass, and so do their variants, except those that really hang."""

import pytest
import safety_schedules as schedules

from cake_verify.analyses.safety import check

CLUSTER_ONE = (("cluster=(2, 1))\n    lm.assume", "cluster=(1, 1))\n    lm.assume"), ("                         cluster=(2, 1))\n", "                         cluster=(1, 1))\n"))

VARIANTS = [
    *[("gemm_ws", {"STAGES": s}) for s in (2, 3, 4, 5, 6)],
    ("gemm_ws", {"BN": 128}),
    ("gemm_ws", {"BK": 128}),
    *[("fmha_fwd", {"D": d, "BN": bn, "CAUSAL": c}) for d in (64, 128) for bn in (64, 128) for c in (True, False)],
    ("kmeans_assign", {"BN": 256}),
    ("kmeans_assign", {"D": 64}),
    ("kda_inter", {"C": 128}),
    ("rmsnorm", {"D": 2048, "WARPS": 8}),
    *[("gemm_sm80", {"STAGES": s}) for s in (2, 3, 4, 5, 6)],
    ("gemm_sm80", {"BM": 64, "BN": 256}),
]


@pytest.mark.parametrize("name", schedules.NAMES)
def test_example_is_safe(name: str) -> None:
    result = schedules.verdict(schedules.text(name))
    assert not result.faults, [f.message for f in result.faults]
    assert not result.undecided
    assert result.events > 0


@pytest.mark.parametrize(("name", "params"), VARIANTS, ids=str)
def test_variant_is_safe(name: str, params: dict) -> None:
    result = schedules.verdict(schedules.text(name), **params)
    assert not result.faults, [f.message for f in result.faults]
    assert not result.undecided


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_gemm_without_a_cluster_is_safe(stages: int) -> None:
    result = schedules.verdict(schedules.text("gemm_ws", *CLUSTER_ONE), STAGES=stages)
    assert not result.faults, [f.message for f in result.faults]


def test_release_one_slot_late_needs_two_slots() -> None:
    fault = schedules.first(schedules.verdict(schedules.text("gemm_ws"), STAGES=1))
    assert fault.code in ("S008", "S023")


def test_full_attention_masks_nothing_but_is_still_safe_at_one_block() -> None:
    settings = schedules.verdict(schedules.text("fmha_fwd"), CAUSAL=False).settings
    assert any(min(s.trips) == 0 for s in settings) and any(max(s.trips) >= 5 for s in settings)


def test_checking_twice_gives_the_same_answer() -> None:
    program = schedules.program(schedules.text("fmha_fwd", ("                lm.wait(v_full, stage=sv)\n", "")))
    one, two = check(program), check(program)
    assert [(f.code, f.span, f.message, f.trace) for f in one.faults] == [(f.code, f.span, f.message, f.trace) for f in two.faults]


def test_data_dependent_loops_share_the_lengths_that_both_roles_read() -> None:
    settings = schedules.verdict(schedules.text("kda_inter")).settings
    assert {s.lengths["CU"][0] % 64 != 0 for s in settings} >= {True}
    assert {s.trips for s in settings} >= {(0, 0), (1, 1)}
