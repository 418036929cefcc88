"""A fault that is only met where a loop has no round says so, and offers to state that it has one."""

import pytest

from bench.verify.cases import CASES
from cake_verify import verify_text
from cake_verify.proposals import applied


@pytest.mark.parametrize("name", ["gemm_store_role", "gemm_deep", "gemm_multicast_m"])
def test_a_forgotten_assumption_is_what_the_first_fix_states(name: str) -> None:
    said = "    lm.assume(K > 0)\n"
    assert CASES[name].text().count(said) == 1
    text = CASES[name].text().replace(said, "")
    found = verify_text(text, params=CASES[name].params)
    first = found.errors[0]
    assert first.cause == "no round" and any("has no round here: K = 0" in note for _, note in first.related)
    fix = first.fixes[0]
    assert fix.grade == "likely" and "lm.assume(K > 0)" in fix.title
    assert verify_text(applied(text, fix.edits), params=CASES[name].params).verdict == "pass"


def test_a_fault_of_every_run_keeps_its_own_fixes() -> None:
    case = CASES["gemm_deep"]
    wrong = verify_text(case.text().replace("init=(k == 0)", "init=False"), params=case.params).errors[0]
    assert wrong.cause != "no round" and not any("no round" in note for _, note in wrong.related)
