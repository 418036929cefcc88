"""A batch without rows, as a server has it between requests: nothing is launched, and no empty tensor is shown to the copy engine."""

from __future__ import annotations

import numpy as np
import pytest
from corpus_runs import failures, judged

import cake_kernels
from cake_backend.binding import bind
from cake_backend.cuda.lower import lower
from cake_backend.judge.admission import as_outputs
from cake_backend.judge.check import Reference
from cake_backend.judge.domain import Domain
from cake_backend.judge.plan import Options, empty, make_plan
from cake_backend.judge.source import read_source
from cake_backend.task import Task

TASKS = cake_kernels.tasks()


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda t: t.name)
def test_every_family_has_an_empty_batch_that_its_data_and_oracle_can_make(task: Task) -> None:
    shapes = [s for s in task.shapes if empty(task, s)]
    assert shapes and all(s.kind == "edge" for s in shapes)
    for shape in shapes:
        for distribution in task.distributions:
            reference = Reference(task, shape.axes, task.inputs(shape.axes, distribution, 3), None)
            answer = as_outputs(task, shape.axes, reference.values)
            assert all(v.ok for v in reference.compare(answer, distribution).values())
            assert all(np.asarray(a).size == 0 for a in answer.values())


@pytest.mark.parametrize("schedule", cake_kernels.schedules(), ids=lambda s: f"{s.family}-{s.name}")
def test_no_schedule_launches_anything_for_an_empty_batch(schedule: cake_kernels.Schedule) -> None:
    task = TASKS[schedule.family]
    source = read_source(schedule.text, {}, target="sm_90a", task=task)
    assert source.routine is not None and len(source.routine.programs) == 1
    manifest = lower(source.routine.programs[0], source=schedule.text, report=False).manifest
    covered = [s for s in task.specialised(source.routine.tunables) if Domain(task, manifest).covers(s)]
    none = next(s for s in task.shapes if empty(task, s))
    gone = {a: 0 for a, v in none.axes.items() if v == 0}
    fixed = {a: v for a, v in source.routine.tunables.items() if a in task.axes and a not in task.scalars}
    some = covered[0].axes if covered else none.axes
    for chosen in [s.axes for s in covered if empty(task, s)] or [{**some, **fixed, **gone}]:
        bound = bind(manifest, task.layouts(chosen), task.scalar_values(chosen))
        assert all(launch["tiles"] == 0 for launch in bound["launches"])
        assert not any(m is not None and 0 in m["dims"] for m in bound["maps"])


def test_an_empty_shape_comes_last_so_that_every_kind_of_data_meets_one_with_elements() -> None:
    task = TASKS["gemm"]
    plan = make_plan(task, {}, Options(heldout=0, shapes=("edge_no_rows", "edge_thin")), seal="x")
    assert [c.shape.name for c in plan.cases[: len(task.distributions)]] == ["edge_thin"] * len(task.distributions)
    assert plan.cases[-1].shape.name == "edge_no_rows"


def test_the_simulator_launches_nothing_either() -> None:
    for family, schedule in (("tiny_gemm", "hopper_rows"), ("tiny_gemm", "hopper_few_send"), ("kmeans_assign", "hopper")):
        shape = next(s.name for s in TASKS[family].shapes if empty(TASKS[family], s))
        verdicts = judged(family, schedule, {}, shape, "normal")
        assert verdicts and not failures(verdicts)
