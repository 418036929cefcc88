"""Reported cases of the conformance gate."""

from __future__ import annotations

import pytest
from cases_conformance import CASES
from reported import Case, check_bad, check_good


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bad_input_is_caught_once_by_its_rule_on_its_line(case: Case) -> None:
    for bad in case.bad:
        check_bad(bad)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_control_is_accepted(case: Case) -> None:
    for good in case.good:
        check_good(good)
