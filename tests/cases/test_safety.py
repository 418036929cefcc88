"""Reported cases of the safety gate."""

from __future__ import annotations

import pytest
from cases_safety import CASES
from reported import Case, check_bad, check_good, edit
from texts_memory import READ_EARLY, SPLIT
from texts_pipelines import ONE_BARRIER, STRADDLE, WORK_QUEUE

from cake_backend.cuda.faults import NotLowered
from cake_backend.cuda.lower import lower
from cake_ir import parse, specialise
from cake_verify import verify_text


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bad_input_is_caught_once_by_its_rule_on_its_line(case: Case) -> None:
    for bad in case.bad:
        check_bad(bad)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_control_is_accepted(case: Case) -> None:
    for good in case.good:
        check_good(good)


def generated(text: str, target: str | None = None) -> str:
    program = specialise(parse(text).schedules[0], {}, target).program
    assert program is not None
    return lower(program).text


def between_init_and_roles(text: str) -> str:
    """What stands between the initialisation of the barriers and the first role."""
    kernel = text[text.index('extern "C"') :]
    return kernel[kernel.index("mbarrier_init(") : kernel.index("if (cta_warp")]


def test_c010_barriers_that_a_peer_signals_are_met_by_the_cluster_before_the_first_use() -> None:
    prologue = between_init_and_roles(generated(STRADDLE))
    assert prologue.index("fence_mbarrier_init();") < prologue.index("cluster_sync();")
    assert "fence.mbarrier_init.release.cluster" in generated(STRADDLE)


def test_c010_barriers_of_one_block_need_no_cluster() -> None:
    prologue = between_init_and_roles(generated(ONE_BARRIER))
    assert prologue.index("fence_mbarrier_init();") < prologue.index("__syncthreads();")
    assert "barrier.cluster" not in generated(ONE_BARRIER)


def test_c022_the_pair_that_straddles_two_problems_is_named() -> None:
    error = verify_text(edit(STRADDLE, ("PER_GROUP=130", "PER_GROUP=129"))).errors[0]
    assert (error.facts["expected"], error.facts["found"]) == ([0, 0, 0], [0, 0, 1])
    assert "CTA 1" in error.trace[0] and "t=(129,0)" in error.trace[0]


def test_c024_the_answer_of_the_queue_is_not_lowered_by_half() -> None:
    """Each CTA has to expect the answer itself; until lowering does that, it refuses the scheduler as a whole."""
    program = specialise(parse(WORK_QUEUE).schedules[0]).program
    assert program is not None
    with pytest.raises(NotLowered) as refused:
        lower(program)
    assert "sched = " in WORK_QUEUE.split("\n")[refused.value.fault.span.line - 1]


def test_c037_a_spin_in_a_resident_grid_is_followed() -> None:
    resident = edit(SPLIT, ('grid="tiles"', 'grid="persistent"'), ('kind="grid"', 'kind="static"'))
    verdict = verify_text(resident)
    assert (verdict.verdict, verdict.errors) == ("pass", ())
    unraised = verify_text(edit(resident, ("                lm.signal(FLAGS, t.g, 1)\n", "")))
    assert [d.code for d in unraised.errors] == ["S041"]
    stale = verify_text(edit(resident, (".zeroed", "")))
    assert [d.code for d in stale.errors] == ["Q010"]


def test_c038_the_error_does_not_need_a_wrong_number() -> None:
    """The assembler would wait by itself; the schedule is refused all the same, and names the accumulator."""
    assert "`new`" in verify_text(READ_EARLY).errors[0].message
