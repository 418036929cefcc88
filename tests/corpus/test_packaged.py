"""Shipped schedules in the mutation benchmark: shapes that they take, long enough to come back to every slot."""

from __future__ import annotations

from functools import cache

import pytest

from bench.verify.cases import CASES
from bench.verify.cases.packaged import Packaged, packaged
from bench.verify.mutate import Subject, mutants
from bench.verify.truth import good, judge
from cake_ir import parse, specialise
from cake_verify.analyses.tape import evaluate


@cache
def shipped() -> dict[str, Packaged]:
    return packaged()


def test_every_shape_keeps_what_its_schedule_assumes() -> None:
    for name, case in shipped().items():
        program = specialise(parse(case.text()).schedules[0], case.params).program
        assert program is not None
        for setting in case.settings:
            given = case.task.scalar_values(setting["axes"])
            assert all(evaluate(program, a.cond, given) is not False for a in program.assumes), (name, setting)


def test_a_ring_that_only_tiles_step_is_walked_round_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    case = shipped()["rmsnorm.hopper_ring_warps"]
    monkeypatch.setitem(CASES, case.name, case)
    assert case.settings[0]["axes"]["ROWS"] >= 7 * 9
    good(case.name, 0)
    (mutant,) = [m for m in mutants(Subject(case)) if m.cls == "drop-wait" and "empty" in m.title]
    assert judge(mutant.text, case.name, most=4).state == "harmful"


def test_what_only_the_lanes_of_a_warp_would_show_is_a_contract() -> None:
    case = shipped()["silu_mul_quant.hopper"]
    found = [m for m in mutants(Subject(case)) if m.cls == "drop-sync"]
    assert found and {m.truth for m in found} == {"contract"}
