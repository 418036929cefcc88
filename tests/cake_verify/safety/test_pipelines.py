"""Pipelines that are right by construction pass; without any one of the lines they need they do not."""

import safety_schedules as schedules
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safety_pipelines import Pipeline, pipelines

QUIET = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


@given(pipelines())
@settings(max_examples=60, **QUIET)
def test_right_pipelines_are_never_refused(pipeline: Pipeline) -> None:
    result = schedules.verdict(pipeline.text)
    assert not result.faults, (result.faults[0].message, pipeline.text)
    assert not result.undecided


@given(pipelines(), st.data())
@settings(max_examples=120, **QUIET)
def test_no_needed_line_can_be_left_out(pipeline: Pipeline, data: st.DataObject) -> None:
    line = data.draw(st.sampled_from(pipeline.needed))
    pad = line[: len(line) - len(line.lstrip())]
    result = schedules.verdict(pipeline.text.replace(line, pad + "pass", 1))
    assert result.faults, (line, pipeline.text)


@given(pipelines(), st.data())
@settings(max_examples=60, **QUIET)
def test_first_likely_fix_never_brings_back_the_same_fault(pipeline: Pipeline, data: st.DataObject) -> None:
    line = data.draw(st.sampled_from(pipeline.needed))
    broken = pipeline.text.replace(line, line[: len(line) - len(line.lstrip())] + "pass", 1)
    fault = schedules.first(schedules.verdict(broken))
    fixes = [f for f in fault.fixes if f.grade != "idea"]
    if fixes:
        after = schedules.verdict(schedules.apply(broken, fixes[0]))
        assert not any((f.code, f.message) == (fault.code, fault.message) for f in after.faults)
