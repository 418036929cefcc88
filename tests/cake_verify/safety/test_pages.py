"""Every safety rule's page is true: its failing text is refused with its code, its passing text is not."""

import pytest
import safety_schedules as schedules

from cake_verify.rule import Rule, room

RULES = room("safety")


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.page.code)
def test_failing_text_gets_the_code(rule: Rule) -> None:
    result = schedules.verdict(rule.page.failing)
    assert rule.page.code in [f.code for f in (*result.faults, *result.undecided)]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.page.code)
def test_passing_text_is_safe(rule: Rule) -> None:
    result = schedules.verdict(rule.page.passing)
    assert not result.faults and not result.undecided


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.page.code)
def test_first_fix_that_is_likely_mends_the_failing_text(rule: Rule) -> None:
    result = schedules.verdict(rule.page.failing)
    fixes = [f.fixes[0] for f in result.faults if f.code == rule.page.code and f.fixes and f.fixes[0].grade != "idea"]
    for fix in fixes[:1]:
        after = schedules.verdict(schedules.apply(rule.page.failing, fix))
        assert rule.page.code not in [f.code for f in after.faults]


def test_every_code_that_a_report_gives_has_a_page() -> None:
    from cake_verify.analyses.report import _REPORTS

    known = {rule.page.code for rule in RULES}
    assert set(_REPORTS) <= known
    assert {"S002", "S007", "S008", "S009", "S012", "S014", "S023", "S028", "S090"} <= known
