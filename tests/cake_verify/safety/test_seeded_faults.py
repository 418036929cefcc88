"""Every deliberate fault of the examples is rejected, where it is and with an edit that mends it."""

import pytest
import safety_schedules as schedules
import safety_seeds as seeds


@pytest.mark.parametrize("seed", seeds.SEEDS, ids=str)
def test_seeded_fault_is_rejected_at_its_line(seed) -> None:
    source = schedules.text(seed.example, (seed.old, seed.new))
    fault = schedules.first(schedules.verdict(source))
    assert (fault.code, fault.span.line) == (seed.code, schedules.line_of(source, seed.at)), fault.message


@pytest.mark.parametrize("seed", seeds.SEEDS, ids=str)
def test_first_fix_of_a_seeded_fault_mends_it(seed) -> None:
    source = schedules.text(seed.example, (seed.old, seed.new))
    fault = schedules.first(schedules.verdict(source))
    assert fault.fixes and fault.fixes[0].grade in ("certain", "likely")
    result = schedules.verdict(schedules.apply(source, fault.fixes[0]))
    assert not result.faults, [f.message for f in result.faults]
    assert not result.undecided


@pytest.mark.parametrize("seed", seeds.SEEDS, ids=str)
def test_report_names_setting_and_keeps_its_trace_short(seed) -> None:
    fault = schedules.first(schedules.verdict(schedules.text(seed.example, (seed.old, seed.new))))
    assert 1 <= len(fault.trace) <= 12
    assert fault.facts["setting"]
    assert fault.message[0] in "`abcdefghijklmnopqrstuvwxyz" and not fault.message.endswith(".")
    assert fault.help
