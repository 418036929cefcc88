"""Plans: private seeds, cases that a candidate can take, held-out shapes inside the task's domain."""

from __future__ import annotations

import random

import pytest

import cake_kernels
from cake_backend.judge.plan import Options, make_plan, plan_hash
from cake_backend.judge.statistics import median_interval, ratio_interval, summarise, untrusted

TASKS = cake_kernels.tasks()


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda t: t.name)
def test_every_kind_of_case_is_there_and_only_bench_shapes_are_timed(task) -> None:
    plan = make_plan(task, {}, Options(), seal="x")
    assert {c.distribution for c in plan.cases} == {d.name for d in task.distributions}
    assert {c.shape.kind for c in plan.cases if c.timed} == {"bench"} and len({c.id for c in plan.cases}) == len(plan.cases)
    assert sum(c.heldout for c in plan.cases) >= 2
    kinds = [c.shape.kind for c in plan.cases]
    assert kinds.index("bench") > max(i for i, k in enumerate(kinds) if k == "sim"), "small cases first"


def test_seeds_are_new_every_time() -> None:
    task = TASKS["gemm"]
    one, two = (make_plan(task, {}, Options(), seal="x") for _ in range(2))
    assert {c.seed for c in one.cases}.isdisjoint(c.seed for c in two.cases)
    assert plan_hash(task, Options()) == plan_hash(task, Options()) != plan_hash(task, Options(rounds=30))


def test_a_plan_can_be_replayed_from_its_generator() -> None:
    task = TASKS["rmsnorm"]
    one, two = (make_plan(task, {"D": 4096}, Options(), seal="x", rng=random.Random(5)) for _ in range(2))
    assert one == two


def test_compile_time_axes_hold_in_every_case() -> None:
    plan = make_plan(TASKS["rmsnorm"], {"D": 4096, "WARPS": 4}, Options(heldout=20), seal="x")
    assert plan.cases and all(c.shape.axes["D"] == 4096 for c in plan.cases)


def test_held_out_shapes_stay_in_the_domain() -> None:
    for task in TASKS.values():
        for case in make_plan(task, {}, Options(heldout=50), seal="x").cases:
            if case.heldout:
                for axis, value in case.shape.axes.items():
                    d = task.domain[axis]
                    assert d.low <= value <= d.high and value % d.multiple == 0


def test_large_shapes_are_restricted_without_the_small_and_the_drawn_ones() -> None:
    task = TASKS["gemm"]
    whole, one = (make_plan(task, {}, options, seal="x") for options in (Options(), Options.of({"bench": ["square_4096"]})))
    assert {c.shape.name for c in one.cases if c.timed} == {"square_4096"} and sum(c.heldout for c in one.cases) >= 2
    small = [{c.shape.name for c in p.cases if c.shape.kind != "bench" and not c.heldout} for p in (whole, one)]
    assert small[0] == small[1] and len(small[0]) > 5


def test_names_restrict_and_unknown_names_are_refused() -> None:
    task = TASKS["gemm"]
    plan = make_plan(task, {}, Options(shapes=("edge_thin",), distributions=("integers",)), seal="x")
    assert [(c.shape.name, c.distribution) for c in plan.cases] == [("edge_thin", "integers")]
    with pytest.raises(ValueError, match="unknown shape"):
        make_plan(task, {}, Options(shapes=("edge_thick",)), seal="x")
    with pytest.raises(ValueError, match="unknown shape"):
        make_plan(task, {}, Options(bench=("square_40960",)), seal="x")
    with pytest.raises(ValueError, match="unknown option `speed`"):
        Options.of({"speed": 3})


def test_the_median_interval_covers_the_median_as_often_as_it_says() -> None:
    draw = random.Random(1)
    hits = 0
    for _ in range(600):
        values = [draw.expovariate(1.0) for _ in range(25)]
        low, high = median_interval(values)
        hits += low <= 0.6931 <= high
    assert 0.93 <= hits / 600 <= 0.99


def test_an_implementation_against_itself_has_ratio_one_inside_the_interval() -> None:
    draw = random.Random(2)
    inside = 0
    for _ in range(300):
        a, b = ([draw.gauss(1.0, 0.03) for _ in range(24)] for _ in range(2))
        low, high = ratio_interval(a, b)["ci95"]
        inside += low <= 1.0 <= high
    assert inside / 300 >= 0.93


def test_few_rounds_or_a_wide_interval_are_not_trusted() -> None:
    assert untrusted(summarise([1e-3] * 24)) is None
    assert "rounds" in (untrusted(summarise([1e-3] * 5)) or "")
    assert "interval" in (untrusted(summarise([1e-3, 2e-3] * 12)) or "")
    assert summarise([]) == {"rounds": 0}
