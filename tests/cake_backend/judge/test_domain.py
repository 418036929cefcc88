"""Shapes outside a candidate's own assumptions: listed, not blamed; the others are judged."""

from __future__ import annotations

import random
from typing import Any

import pytest

import cake_kernels
from cake_backend.binding import BindError, OutsideDomain, TensorLayout, bind
from cake_backend.judge import evaluate
from cake_backend.judge.domain import Domain, assumptions, describe, suffix
from cake_backend.judge.plan import Options, make_plan
from cake_backend.judge.routine import Routine
from cake_backend.judge.simulation import simulate_cases
from cake_backend.manifest import Guard, Manifest
from cake_backend.task import Shape
from cake_ir.frontend import parse, specialise

TASKS = cake_kernels.tasks()
RMS = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == ("rmsnorm", "hopper"))
RESIDENT = next(s.text for s in cake_kernels.schedules() if s.family == "kmeans_assign" and "resident" in s.name)
SMALL_ONLY = RMS.replace("    with ", "    lm.assume(ROWS <= 6)\n    with ", 1)
assert SMALL_ONLY != RMS


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


def judged(text: str, task: Any = TASKS["rmsnorm"], **more: Any) -> dict[str, Any]:
    return evaluate(text, task=task, device="simulate", options={"policies": 1}, **more)


def test_a_shape_outside_is_listed_with_the_assumption_and_its_line_and_the_rest_is_judged() -> None:
    record = judged(SMALL_ONLY)
    assert record["status"] == "PASSED_UNTIMED", record["summary"]
    domain = record["domain"]
    assert domain["kind"] == "partial" and domain["covered"]
    outside = {o["shape"]: o for o in domain["outside"]}
    assert set(outside) | set(domain["covered"]) | set(domain["other_shapes"]) == {s.name for s in TASKS["rmsnorm"].shapes}
    entry = next(iter(outside.values()))
    assert entry["line"] == line_of(SMALL_ONLY, "lm.assume(ROWS") and "ROWS <= 6" in entry["reason"] and "for ROWS=" in entry["reason"]
    assert "outside its domain" in record["summary"] and "it takes no timed shape" in record["summary"]
    assert not {c["shape"] for c in record["numerics"]["cases"]} & set(outside)


def test_a_candidate_that_takes_no_shape_is_rejected_with_its_own_words() -> None:
    text = SMALL_ONLY.replace("ROWS <= 6", "ROWS == 77")
    record = judged(text)
    assert record["status"] == "RUNTIME_ERROR" and "ROWS == 77" in record["summary"]
    assert f"line {line_of(text, 'lm.assume(ROWS')}" in record["summary"]
    assert record["findings"][-1]["line"] == line_of(text, "lm.assume(ROWS")


def test_the_resident_k_means_schedule_takes_what_fits_and_says_what_does_not() -> None:
    program = specialise(parse(RESIDENT).schedules[0]).program
    assert program is not None
    task = TASKS["kmeans_assign"]
    domain = Domain(task, guards=assumptions(Routine.of(program)))
    told = describe(domain, task.specialised(program.tunables), dict(program.tunables))
    assert told["kind"] == "partial" and "many_centroids" in {o["shape"] for o in told["outside"]}
    assert all(task.shape(o["shape"]).axes["NK"] > 1024 or task.shape(o["shape"]).axes["NK"] % 4 for o in told["outside"])
    plan = make_plan(task, program.tunables, Options(heldout=12), seal="x", covers=domain.covers)
    assert sum(c.heldout for c in plan.cases) >= 12 and all(domain.covers(c.shape) for c in plan.cases)
    assert {"sim", "bench"} <= {c.shape.kind for c in plan.cases}


def test_an_honest_candidate_covers_everything_that_its_parameters_leave() -> None:
    record = judged(RMS)
    assert record["domain"]["outside"] == [] and record["domain"]["kind"] in ("whole", "specialised") and "outside" not in record["summary"]


def test_a_small_shape_is_drawn_where_the_tasks_own_lie_outside() -> None:
    text = RMS.replace("    with ", "    lm.assume(ROWS % 64 == 0)\n    with ", 1)
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    outcome = simulate_cases(program, TASKS["rmsnorm"], Options(policies=0), rng=random.Random(3))
    assert outcome.cases and all(c["axes"]["ROWS"] % 64 == 0 for c in outcome.cases)


def test_a_guard_is_a_limit_of_the_domain_and_any_other_misfit_is_not() -> None:
    manifest = Manifest("s", "sm_90a", (), scalars={"N": "i32", "M": "i32"}, guards=(Guard("N <= 4", "the schedule assumes N <= 4", 9),))
    with pytest.raises(OutsideDomain, match=r"the schedule assumes N <= 4, which does not hold for N=5$") as told:
        bind(manifest, {}, {"N": 5, "M": 1})
    assert told.value.line == 9
    with pytest.raises(BindError, match="no value") as other:
        bind(manifest, {}, {"N": 5})
    assert not isinstance(other.value, OutsideDomain)


def test_a_guard_about_a_stride_quotes_its_condition() -> None:
    manifest = Manifest.from_json({
        "version": 1, "schedule": "s", "target": "sm_90a", "scalars": {}, "tensors": {"A": {"rank": 2, "dtype": "bf16", "mode": "in"}},
        "launches": [{"entry": "k", "block": 32, "grid": {"kind": "tiles", "tiles": [1]}, "params": []}],
        "guards": [{"expr": "stride(A, 0) % 8 == 0", "message": "rows of `A` start on multiples of 16 bytes", "line": 3}],
    })  # fmt: skip
    with pytest.raises(OutsideDomain, match=r"16 bytes \(`stride\(A, 0\) % 8 == 0`\), which does not hold$"):
        bind(manifest, {"A": TensorLayout.dense((4, 7), "bf16")}, {})


def test_the_summary_names_few_shapes_and_counts_the_others() -> None:
    outside = [{"shape": f"s{i}", "reason": "the schedule assumes N <= 4", "line": 3} for i in range(9)]
    outside = [{**o, "kind": "check"} for o in outside]
    told = suffix({"outside": outside, "timed": 1}, timed=True)
    assert "`s0`, `s1`, `s2`, `s3` and 5 more (line 3: the schedule assumes N <= 4)" in told and "it takes no timed shape" not in told
    assert suffix({"outside": []}, timed=True) == ""


def test_a_shape_that_cannot_be_bound_for_another_reason_is_not_called_outside() -> None:
    manifest = Manifest("s", "sm_90a", (), scalars={"Z": "i32"})
    assert Domain(TASKS["rmsnorm"], manifest).covers(Shape("x", dict(TASKS["rmsnorm"].shapes[0].axes)))


def test_without_a_manifest_rows_that_a_tensor_map_cannot_take_are_outside() -> None:
    gemm = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == ("gemm", "hopper"))
    program = specialise(parse(gemm).schedules[0]).program
    assert program is not None
    found = [g for g in assumptions(Routine.of(program)) if "multiples of 16 bytes" in g.message]
    assert {g.expr for g in found} == {f"stride({n}, 0) % 8 == 0" for n in program.tensors}
