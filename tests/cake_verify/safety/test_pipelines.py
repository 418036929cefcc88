"""Pipelines that are right by construction pass; without any one of the lines they need they do not."""

import safety_schedules as schedules
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safety_pipelines import Pipeline, pipelines

from cake_verify import verify_text

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


ONCE = """
@cake.schedule(target="sm_90a")
def once(lm, A: LM.tma2d[LM.bf16, "M", "K"], C: LM.gmem2d[LM.bf16, "M", "K"], M: LM.i32, K: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(8192)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    more = lm.pipeline(stages=1)
    free = lm.barrier(pipeline=more, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64), lm.cdiv(K, 64)))
    with load:
        for t in lm.tiles(sched):
            f = lm.step(more)
            lm.wait(free, stage=f)
            s = lm.step(ring)
            a.tma_load(A, coords=(t.n * 64, t.m * 64), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            x = a.load(form="vec")
            lm.store(C, x, coords=(t.n * 64, t.m * 64), clip=True)
"""


def test_a_barrier_that_never_completes_is_an_error_only_where_somebody_comes_back_to_it():
    once = verify_text(ONCE)
    assert once.verdict == "pass", once.to_text()
    assert [d.code for d in once.diagnostics if d.severity == "warning"] == ["S008"]
    again = verify_text(ONCE.replace('lm.launch(grid="tiles")', 'lm.launch(grid="persistent")').replace('kind="grid"', 'kind="static"'))
    assert again.errors and again.errors[0].code == "S008"
