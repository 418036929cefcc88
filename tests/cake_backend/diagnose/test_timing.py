"""Findings about time: the edit that helps is named, with a bound from re-simulation and what was not measured."""

from collections.abc import Callable
from typing import Any

import pytest

from cake_backend.diagnose import CATALOGUE, ROUTES, Finding, diagnose
from cake_ir.program import Program

BIG = {"M": 8192, "N": 8192, "K": 8192}
Example = Callable[..., Program]
CLUSTER_1 = (("cluster=(2, 1)", "cluster=(1, 1)"), (', multicast="m"', ""), (', scope="cluster"', ""))


def simulated(axes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"status": "PASSED_UNTIMED", "evidence": "simulated", "prediction": {"device": "H200-SXM", "shapes": [{"shape": "big", "axes": axes}]}, **more}


def measured(seconds: float, mhz: int | None = 1440, **more: Any) -> dict[str, Any]:
    telemetry = [{"sm_mhz": mhz, "power_mw": 692_000, "throttle_reasons": 4}] * 3 if mhz else []
    clock = {"median_s": seconds, "relative_ci": 0.01, "rounds": 24}
    shape = {"shape": "big", "axes": BIG, "seconds": seconds, "graph": clock, "eager": clock, "telemetry": telemetry}
    return {"status": "PASSED", "evidence": "measured", "timing": {"shapes": [{**shape, **more}]}}


def by_id(findings: list[Finding]) -> dict[str, Finding]:
    return {f.id: f for f in findings}


def test_two_stages_are_diagnosed_as_a_shallow_ring(example: Example) -> None:
    program = example("gemm_ws", STAGES=2)
    found = diagnose(simulated(BIG), program)
    first = found[0]
    assert first.id == "B04" and first.line == program.rings["ab"].span.line
    assert "`STAGES=3`" in first.edit and first.route == "candidate"
    assert first.gain is not None and 0.25 < first.gain.bound < 0.45
    assert "a measured time" in first.absent and "a stall profile" in first.absent


def test_the_plateau_is_diagnosed_as_tensor_bound_and_nothing_else(example: Example) -> None:
    found = diagnose(simulated(BIG), example("gemm_ws"))
    assert [f.id for f in found] == ["B01"]


def test_a_narrow_tile_without_multicast_is_fill_bound(example: Example) -> None:
    found = by_id(diagnose(simulated(BIG), example("gemm_ws", *CLUSTER_1, BN=64, STAGES=8)))
    assert found["B06"].gain is not None and 0.1 < found["B06"].gain.bound < 0.25
    assert "multicast" in found["B06"].edit


def test_a_small_grid_and_a_bad_tail_are_seen(example: Example) -> None:
    few = by_id(diagnose(simulated({"M": 1024, "N": 1024, "K": 1024}), example("gemm_ws")))
    assert few["B10"].numbers == {"tiles": 32, "SMs": 132}
    tail = by_id(diagnose(simulated({"M": 4096, "N": 2304, "K": 8192}), example("gemm_ws")))
    assert tail["B09"].gain is not None and tail["B09"].gain.bound > 0.2


def test_clusters_that_do_not_fit_beside_each_other_are_seen(example: Example) -> None:
    four = example("gemm_ws", ("cluster=(2, 1)", "cluster=(4, 1)"))
    found = by_id(diagnose(simulated(BIG), four))
    assert found["B10"].numbers == {"clusters": 30, "size": 4, "SMs": 132} and "smaller clusters" in found["B10"].edit


def test_an_arrive_at_cluster_scope_is_foreseen_and_then_seen(example: Example) -> None:
    program = example("gemm_ws", ("stage=s.prev())", 'stage=s.prev(), order="cluster")'))
    foreseen = by_id(diagnose(simulated(BIG), program))["B13"]
    assert foreseen.basis == ("predicted",) and "machine code" in foreseen.absent and foreseen.gain is not None and foreseen.gain.bound > 0.1
    report = {"ok": True, "resources": {"registers": 168}, "remarks": [{"code": "sass-membar", "line": 47, "text": "x"}]}
    seen = by_id(diagnose(simulated(BIG, compile=report), program))["B13"]
    assert seen.basis == ("compiled",) and seen.certain and seen.route == "candidate"
    unasked = by_id(diagnose(simulated(BIG, compile=report), example("gemm_ws")))["B13"]
    assert unasked.route == "lowering" and unasked.gain is not None and unasked.gain.bound > 0.1


def test_a_serialisation_remark_becomes_an_edit_with_its_line(example: Example) -> None:
    report = {"ok": True, "resources": {"registers": 168}, "serialised": True,
              "remarks": [{"code": "C7514", "line": 45, "text": "wgmma serialized", "serialises": True, "severity": "warning"}]}  # fmt: skip
    finding = by_id(diagnose(simulated(BIG, compile=report), example("gemm_ws")))["B14"]
    assert finding.line == 45 and finding.certain and "mma_wait" in finding.edit
    assert finding.gain is not None and 0.2 < finding.gain.bound < 0.5


def test_spills_name_the_tightest_role_and_give_no_bound(example: Example) -> None:
    report = {"ok": True, "resources": {"registers": 168, "spill_stores": 100, "spill_loads": 44}, "remarks": []}
    finding = by_id(diagnose(simulated(BIG, compile=report), example("gemm_ws")))["B15"]
    assert finding.role == "load" and finding.gain is None and finding.absent[0].startswith("what the spills cost")


def test_a_mask_on_every_tile_of_scores_is_found_and_overlap_is_not_claimed(example: Example) -> None:
    program = example("kmeans_assign")
    record = simulated({"NB": 32, "NP": 65536, "NK": 1024})
    found = by_id(diagnose(record, program))
    assert found["B35"].line is not None and "norms" in found["B35"].edit and found["B35"].gain is not None and found["B35"].gain.bound > 0.05
    assert found["B23"].route == "cost model"


def test_an_early_wait_is_only_a_finding_where_nothing_reads_the_result(example: Example) -> None:
    early = (("lm.mma_wait(pending=1)", "lm.mma_wait(pending=0)"), ("warps=range(0, 8), regs=232, members=2", "warps=range(0, 4), regs=232"), ("range(8, 12)", "range(4, 8)"))
    found = by_id(diagnose(simulated(BIG), example("gemm_ws", *early, BM=64)))
    assert found["B31"].gain is not None and found["B31"].gain.bound > 0.05 and "pending=1" in found["B31"].edit
    assert "B31" not in by_id(diagnose(simulated({"NB": 32, "NP": 65536, "NK": 1024}), example("kmeans_assign")))


def test_direct_stores_are_uncoalesced(example: Example) -> None:
    start = "            for j in lm.static_range(BN // 64):"
    text_end = "            lm.store(OUT, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.m * BM + 64 * math.index))\n"
    from pathlib import Path

    from cake_ir import parse, specialise

    source = (Path(__file__).resolve().parents[2] / "examples" / "gemm_ws.py").read_text()
    head = source[: source.index(start)].replace("C: LM.tma2d,", "OUT: LM.gmem2d[LM.bf16],")
    done = specialise(parse(head + text_end, "test").schedule(None), {})
    assert done.program is not None, done.faults
    finding = by_id(diagnose(simulated({"M": 4096, "N": 4096, "K": 1024}), done.program))["B27"]
    assert finding.numbers["sectors"] == 2 * finding.numbers["ideal"] and finding.gain is not None


def test_a_measurement_inside_the_interval_is_no_finding_against_the_model(example: Example) -> None:
    found = by_id(diagnose(measured(1.610e-3, mhz=1330), example("gemm_ws")))
    assert "B40" not in found and "B02" in found and "a measured time" not in found["B01"].absent


def test_a_measurement_outside_the_interval_goes_to_the_cost_model(example: Example) -> None:
    finding = by_id(diagnose(measured(4.0e-3, mhz=1440), example("gemm_ws")))["B40"]
    assert finding.route == "cost model" and "2.6" in finding.claim and "second run" in finding.refuted_by


def test_noise_and_call_overhead_are_the_environments(example: Example) -> None:
    slow = {"median_s": 2.4e-3, "relative_ci": 0.08, "rounds": 24}
    found = by_id(diagnose(measured(1.61e-3, eager=slow, graph={"median_s": 1.61e-3, "relative_ci": 0.05, "rounds": 24}), example("gemm_ws")))
    assert found["B37"].route == "environment" and found["B39"].gain is not None and found["B39"].gain.bound == pytest.approx(1 - 1.61 / 2.4)


def test_an_intrusive_profile_is_not_believed(example: Example) -> None:
    found = by_id(diagnose(simulated(BIG, stalls={"inflation": 0.31, "members": []}), example("gemm_ws")))
    assert "B38" in found


def test_a_profile_that_disagrees_goes_to_the_cost_model(example: Example) -> None:
    members = [{"role": "math", "member": i, "cycles": 1000, "waits": [{"what": "ab_full", "cycles": 100}]} for i in range(2)]
    found = by_id(diagnose(simulated(BIG, stalls={"inflation": 0.01, "members": members}), example("gemm_ws")))
    assert found["B40"].route == "cost model" and "mma_wait" in found["B40"].claim


def test_every_finding_is_complete(example: Example) -> None:
    records = [simulated(BIG), measured(4e-3), simulated({"M": 256, "N": 256, "K": 64})]
    for record in records:
        for params in ({}, {"STAGES": 2}):
            for f in diagnose(record, example("gemm_ws", **params)):
                body = f.to_json()
                assert body["id"] in CATALOGUE and body["route"] in ROUTES
                assert body["claim"] and body["edit"] and body["refuted_by"] and body["basis"]
                assert f.gain is None or 0 <= f.gain.bound <= 1


def test_text_and_params_do_instead_of_a_program() -> None:
    from pathlib import Path

    text = (Path(__file__).resolve().parents[2] / "examples" / "gemm_ws.py").read_text()
    found = diagnose(simulated(BIG, params={"STAGES": 2}), text=text)
    assert found[0].id == "B04"
