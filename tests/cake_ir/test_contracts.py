"""The hardware rules are complete for what the instruction table refers to."""

from __future__ import annotations

import json
from importlib.resources import files

from cake_ir.targets import TARGETS
from cake_ir.targets.contracts import CONTRACTS, SCOPES, contracts_for


def test_every_rule_that_an_instruction_family_cites_is_stated() -> None:
    raw = json.loads(files("cake_ir.targets").joinpath("data", "instructions.json").read_text())
    cited = {c for family in raw["families"] for c in family["contracts"]}
    assert cited <= set(CONTRACTS)


def test_rules_are_one_lower_case_sentence() -> None:
    for c in CONTRACTS.values():
        assert c.rule[0].islower() or c.rule.startswith(("M, N", "wgmma"))
        assert not c.rule.endswith(".") and len(c.rule) < 170, c.id
        assert c.outcome in {"hang", "silent", "illegal", "misaligned", "fault", "launch", "compile", "slow", "undefined"}


def test_scopes_are_targets_and_rules_of_an_absent_unit_do_not_apply() -> None:
    assert all(set(names) <= set(TARGETS) for names in SCOPES.values())
    ids = {name: {c.id for c in contracts_for(name)} for name in TARGETS}
    assert "HW063" in ids["sm_90a"] and "HW063" not in ids["sm_100a"]
    assert "HW087" in ids["sm_103a"] and "HW087" not in ids["sm_120a"]
    assert "HW047" not in ids["sm_120a"] and "HW046" in ids["sm_120a"]
    assert not any(i in ids["sm_80"] for i in ("HW040", "HW051", "HW066", "HW093"))
