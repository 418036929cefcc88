"""Every schedule of the corpus is right: the verifier passes it, the simulator runs it clean and its numbers match the oracle."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.sight import seen, verdict_of
from bench.verify.truth import program_of
from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_ir.targets import TARGETS


@pytest.mark.parametrize("name", CASES)
def test_the_verifier_passes_every_good_schedule(name: str) -> None:
    verdict, _ = verdict_of(CASES[name].text(), name)
    assert verdict.verdict == "pass", [(e["code"], e["lines"], e["message"]) for e in seen(verdict)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("policy", ["canonical", "late"])
def test_every_good_schedule_simulates_clean_and_right(name: str, policy: str) -> None:
    case = CASES[name]
    program = program_of(case.text(), case)
    assert program is not None
    for setting in range(len(case.settings)) if policy == "canonical" else (1,):
        filled = case.arguments(setting)
        run = simulate(program, filled.tensors, filled.scalars, ctas=case.grid(setting), policy=policy)
        assert run.ok, run.faults
        assert case.wrong(run.outputs, filled) == ""


def test_the_corpus_covers_every_target() -> None:
    named = {target for case in CASES.values() for schedule in parse(case.text()).schedules for target in schedule.targets}
    assert named == set(TARGETS)


@pytest.mark.parametrize("name", CASES)
def test_every_schedule_specialises_with_its_own_defaults_on_every_target_it_names(name: str) -> None:
    (schedule,) = parse(CASES[name].text()).schedules
    for target in schedule.targets:
        assert specialise(schedule, target=target).faults == ()
