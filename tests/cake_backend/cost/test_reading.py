"""The timing reading: figures that were measured, and the algebra that lets it skip what repeats."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_backend.cost.calibration import CORNERS, calibrations, read
from cake_backend.cost.machine import Evidence
from cake_backend.cost.predict import Setting, setting
from cake_backend.cost.steady import Repetition
from cake_backend.cost.tensor_unit import Group, TensorUnit
from cake_ir.program import Program

BIG = {"M": 8192, "N": 8192, "K": 8192}
MIDDLE = {"M": 4096, "N": 4096, "K": 4096}


def _setting(program: Program, args: dict[str, Any]) -> Setting:
    found = setting(program, args)
    assert isinstance(found, Setting), found
    return found


def _nominal(program: Program, args: dict[str, Any]) -> float:
    s = _setting(program, args)
    return s.cycles(s.calibration.constants())[0]


def test_a_hand_written_kernel_with_the_same_decisions_is_within_three_and_a_half_percent(variant: Callable[[str], Program]) -> None:
    assert _nominal(variant("base"), BIG) == pytest.approx(2_138_595, rel=0.035)  # its slowest block, without the launch
    assert _nominal(variant("base"), MIDDLE) == pytest.approx(275_072, rel=0.035)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("three stages", 1.01, 1.05),
        ("cluster 1", 0.99, 1.01),
        ("bn 128", 0.99, 1.05),
        ("depth 0", 1.00, 1.05),
        ("group 1", 0.99, 1.02),
        ("two stages", 1.45, 1.60),
        ("cluster 1, two stages", 1.50, 1.60),
        ("bn 128, cluster 1", 0.99, 1.05),
        ("n 64", 1.15, 1.50),
    ],
)
def test_a_decision_costs_cycles_in_the_range_that_is_known(variant: Callable[[str], Program], name: str, low: float, high: float) -> None:
    assert low <= _nominal(variant(name), BIG) / _nominal(variant("base"), BIG) <= high


def test_a_fence_in_the_consumers_loop_costs_more_than_its_slack(variant: Callable[[str], Program]) -> None:
    s = _setting(variant("base"), BIG)
    c = s.calibration.constants()
    ratio = s.cycles(c, Evidence(fences=True))[0] / s.cycles(c)[0]
    assert 1.1 < ratio < 1.35


def test_serialised_groups_cost_the_fixed_latency_of_every_instruction(variant: Callable[[str], Program]) -> None:
    s = _setting(variant("base"), BIG)
    c = s.calibration.constants()
    ratio = s.cycles(c, Evidence(serialised=True))[0] / s.cycles(c)[0]
    assert ratio == pytest.approx((128 + c.mma_serial_gap) / 128, rel=0.05)


@pytest.mark.parametrize("name", ["base", "two stages", "bn 128", "one consumer, cluster 1", "cluster order"])
def test_skipping_repetitions_changes_nothing(variant: Callable[[str], Program], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    s = _setting(variant(name), {"M": 8192, "N": 8192, "K": 2048})
    c = s.calibration.constants()
    quick = s.cycles(c)[1]
    monkeypatch.setattr(Repetition, "turned", lambda self, member, loop: None)
    whole = s.cycles(c)[1]
    assert quick.settled and quick.events < whole.events / 3
    assert quick.cycles == whole.cycles
    assert quick.runs == whole.runs
    for unit, busy in whole.busy.items():
        assert quick.busy[unit] == pytest.approx(busy, abs=1.0)
    for a, b in zip(quick.members, whole.members, strict=True):
        for op, waited in b.waits.items():
            assert a.waits[op] == pytest.approx(waited, abs=2.0)


def test_real_trip_counts_take_less_than_fifty_milliseconds(variant: Callable[[str], Program]) -> None:
    s = _setting(variant("base"), BIG)
    c = s.calibration.constants()
    took = []
    for _ in range(5):
        start = time.process_time()
        s.cycles(c)
        took.append(time.process_time() - start)
    assert min(took) < 0.05


def test_long_trip_counts_take_no_longer(variant: Callable[[str], Program]) -> None:
    s = _setting(variant("base"), {"M": 65536, "N": 65536, "K": 131072})
    reading = s.cycles(s.calibration.constants())[1]
    assert reading.events < 5_000
    assert reading.cycles > 1e9


def test_every_corner_of_the_calibration_is_ordered(variant: Callable[[str], Program]) -> None:
    s = _setting(variant("two stages"), BIG)
    cycles = {corner: s.cycles(s.calibration.constants(corner))[0] for corner in CORNERS}
    assert cycles["optimistic"] < cycles["nominal"] < cycles["pessimistic"]
    assert cycles["nominal"] < cycles["slow fill"] and cycles["nominal"] < cycles["long latency"]


def test_a_calibration_with_a_missing_or_impossible_constant_is_refused() -> None:
    import json
    from importlib.resources import files

    raw = json.loads(files("cake_backend.cost").joinpath("calibrations", "h200-sxm.json").read_text())
    for broken in ({"fma": None}, {"fma": {**raw["constants"]["fma"], "low": 3.0}}, {"factor_for_gemm": raw["constants"]["fma"]}):
        constants = {k: v for k, v in (raw["constants"] | broken).items() if v is not None}
        with pytest.raises(ValueError, match=next(iter(broken))):
            read(json.dumps(raw | {"constants": constants}))


def test_every_constant_says_where_it_comes_from() -> None:
    for entry in calibrations()["H200-SXM"].entries.values():
        assert entry.evidence in ("measured", "inferred") and len(entry.source) > 5


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(0, 400)), min_size=1, max_size=12))
@settings(max_examples=80, deadline=None)
def test_the_tensor_core_works_without_gaps_and_in_order(jobs: list[tuple[int, int, int]]) -> None:
    jobs.sort(key=lambda j: j[2])
    unit = TensorUnit(fixed=55.0)
    groups = [(member, Group(float(at), count, 64.0, 0.0)) for member, count, at in jobs]
    looks: list[float] = []
    for member, group in groups:
        while looks and looks[0] <= group.ready:
            again = unit.serve(looks.pop(0))[1]
            looks += [again] if again is not None else []
        at = unit.add(member, group)
        looks += [at] if at is not None else []
    while looks:
        again = unit.serve(looks.pop(0))[1]
        looks += [again] if again is not None else []
    done = [g.done for _, g in groups]
    assert None not in done
    total = 64.0 * sum(count for _, count, _ in jobs)
    assert unit.busy == total
    assert max(d for d in done if d is not None) <= max(at for _, _, at in jobs) + total + 55
    for member in range(3):
        own = [g.done for m, g in groups if m == member]
        assert own == sorted(own)


@given(
    st.sampled_from([(2, 256), (3, 256), (4, 128), (6, 128), (5, 64), (2, 64)]), st.booleans(), st.integers(1, 60), st.integers(1, 9),
    st.sampled_from(CORNERS),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_skipping_changes_nothing_for_any_ring_tile_and_trip_count(
    example: Callable[..., Program], ring: tuple[int, int], resident: bool, trips: int, rounds: int, corner: str
) -> None:
    stages, bn = ring
    program = example("gemm_ws", STAGES=stages, BN=bn)
    s = _setting(program, {"M": 128 * 132 * rounds, "N": bn, "K": 64 * trips + (7 if resident else 0)})
    c = s.calibration.constants(corner)
    quick = s.cycles(c)[1]
    turned = Repetition.turned
    try:
        Repetition.turned = lambda self, member, loop: None  # type: ignore[method-assign]  # the walk without skipping
        whole = s.cycles(c)[1]
    finally:
        Repetition.turned = turned  # type: ignore[method-assign]
    assert quick.cycles == whole.cycles
    assert quick.runs == whole.runs
