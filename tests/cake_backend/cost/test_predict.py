"""Predictions: intervals, clocks, floors, and where the model abstains."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cake_backend.cost import predict
from cake_ir.program import Program
from cake_ir.targets import UnknownDevice, device

RESULTS = Path(__file__).resolve().parents[3] / "bench" / "results"
BIG = {"M": 8192, "N": 8192, "K": 8192}


def _build(**changes: Any) -> dict[str, Any]:
    return {"ok": True, "resources": {"registers": 168, "spill_stores": 0, "spill_loads": 0}, "remarks": [], "serialised": False, **changes}


def test_the_interval_holds_what_a_hand_written_kernel_took(variant: Callable[[str], Program]) -> None:
    cycles = predict(variant("base"), BIG).cycles
    assert cycles is not None and cycles.low < 2_138_595 < cycles.high
    small = predict(variant("base"), {"M": 4096, "N": 4096, "K": 4096}).cycles
    assert small is not None and small.low < 275_072 < small.high


def test_time_comes_with_its_clock_or_not_at_all(variant: Callable[[str], Program]) -> None:
    known = predict(variant("base"), BIG)
    assert known.clock is not None and known.seconds is not None and "power-capped" in known.clock.source
    assert known.seconds.low < 1.610e-3 < known.seconds.high
    slow = predict(variant("two stages"), BIG)
    assert slow.clock is None and slow.seconds is None and "R09" in {w.code for w in slow.withheld}
    assert slow.covered


def test_a_grid_that_leaves_most_sms_idle_has_no_known_clock(variant: Callable[[str], Program]) -> None:
    p = predict(variant("base"), {"M": 130, "N": 248, "K": 16384})
    assert p.cycles is not None and p.binding == "tensor" and p.clock is None and "R09" in {w.code for w in p.withheld}


def test_the_binding_unit_is_named(variant: Callable[[str], Program]) -> None:
    assert predict(variant("base"), BIG).binding == "tensor"
    assert predict(variant("two stages"), BIG).binding == "latency of ring `ab`"
    assert predict(variant("n 64"), BIG).binding == "fill"


def test_the_floor_is_the_tensor_work_spread_over_all_sms(variant: Callable[[str], Program]) -> None:
    p = predict(variant("base"), BIG)
    assert p.floor == pytest.approx(2 * 8192**3 / 4061 / 132, rel=1e-4)
    assert p.ratio == pytest.approx(1.059, abs=0.01)
    assert p.grid is not None and p.grid.rounds == 16 and p.grid.balance == pytest.approx(15.515 / 16, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "args", "code"),
    [
        ("fmha_fwd", {"B": 4, "H": 16, "S": 4096, "scale_log2": 0.1}, "R02"),
        ("kmeans_assign", {"NB": 32, "NP": 65536, "NK": 1024}, "R02"),
        ("kda_inter", {"H": 16, "NSEQ": 8}, "R06"),
        ("rmsnorm", {"ROWS": 65536, "eps": 1e-6}, "R07"),
        ("gemm_sm80", BIG, "R01"),
    ],
)
def test_every_other_family_is_withheld_with_its_reason(example: Callable[..., Program], name: str, args: dict[str, Any], code: str) -> None:
    p = predict(example(name), args)
    assert not p.covered and code in {w.code for w in p.withheld}
    assert p.seconds is None
    if code != "R02":
        assert p.cycles is None


def test_an_uncalibrated_board_of_the_same_architecture_gets_a_ratio_only(variant: Callable[[str], Program]) -> None:
    p = predict(variant("base"), BIG, device="H100-SXM5")
    assert p.cycles is None and p.seconds is None and p.ratio is not None and 1.0 < p.ratio < 1.2
    assert p.withheld[0].code == "R01"


def test_a_board_of_another_architecture_gets_no_figure(variant: Callable[[str], Program]) -> None:
    p = predict(variant("base"), BIG, device="A100-SXM4-80GB")
    assert p.cycles is None and p.ratio is None and p.withheld[0].code == "R01"
    with pytest.raises(UnknownDevice):
        predict(variant("base"), BIG, device="H300")


def test_a_missing_argument_is_a_reason_not_an_exception(variant: Callable[[str], Program]) -> None:
    p = predict(variant("base"), {"M": 8192, "N": 8192})
    assert p.cycles is None and "`K`" in p.withheld[0].text


@pytest.mark.parametrize(
    ("report", "told"),
    [
        (_build(serialised=True, remarks=[{"code": "C7510", "serialises": True, "line": 45}]), "serialises"),
        (_build(remarks=[{"code": "sass-membar", "line": 47}]), "memory barrier"),
        (_build(resources={"registers": 168, "spill_stores": 40, "spill_loads": 40}), "80 bytes"),
    ],
)
def test_a_compile_report_can_send_a_candidate_to_the_end(variant: Callable[[str], Program], report: dict[str, Any], told: str) -> None:
    p = predict(variant("base"), BIG, build=report)
    assert p.tier == "compiled" and told in p.last and p.covered
    assert predict(variant("base"), BIG, build=_build()).last == ""


def test_an_arrive_ordered_at_cluster_scope_in_the_loop_sorts_last(variant: Callable[[str], Program]) -> None:
    assert 'order="cluster"' in predict(variant("cluster order"), BIG).last


def test_a_prediction_is_a_json_value_labelled_predicted(variant: Callable[[str], Program]) -> None:
    body = json.loads(json.dumps(predict(variant("base"), BIG).to_json()))
    assert body["label"] == "predicted" and body["tier"] == "spec" and body["cycles"]["mid"] > 2e6


@pytest.mark.parametrize("args", [{"M": 1, "N": 8, "K": 8}, {"M": 129, "N": 264, "K": 72}, {"M": 130, "N": 248, "K": 4104}, {"M": 0, "N": 8, "K": 64}])
def test_tiny_and_ragged_shapes_are_read_too(variant: Callable[[str], Program], args: dict[str, int]) -> None:
    p = predict(variant("base"), args)
    assert p.grid is not None and p.milliseconds < 2000


@pytest.mark.parametrize(("name", "args"), [("gemm_ws", {"M": 2**31 - 1, "N": 2**31 - 1, "K": 2**31 - 1}), ("fmha_fwd", {"B": 64, "H": 64, "S": 131072, "scale_log2": 0.1})])
def test_absurd_arguments_are_answered_within_seconds(example: Callable[..., Program], name: str, args: dict[str, Any]) -> None:
    p = predict(example(name), args)
    assert p.milliseconds < 40_000  # minutes would be a hang; a busy machine takes several times what an idle one does
    assert p.cycles is None or p.cycles.mid > 1e12


def test_clusters_of_four_leave_sms_out_and_the_rounds_say_so() -> None:
    board = device("H200-SXM")
    assert [board.clusters_at_once(n, 1) for n in (1, 2, 3, 4, 8)] == [132, 66, 39, 30, 15]
    assert board.clusters_at_once(4, 4) == 124 and board.clusters_at_once(4, 8) == 248 and board.clusters_at_once(9, 1) == 14
    assert device("H100-SXM5").clusters_at_once(4, 1) == 33  # not measured there


def test_the_clusters_of_the_board_are_the_recorded_ones() -> None:
    recorded = json.loads((RESULTS / "hardware.json").read_text())["questions"]["clusters_at_once"]["cases"]
    board = device("H200-SXM")
    for case, answer in recorded.items():
        size, resident = (int(x) for x in re.findall(r"\d+", case))
        assert board.clusters_at_once(size, resident) == answer["clusters_said"] == answer["clusters_seen"], case
    assert len(recorded) == 40
