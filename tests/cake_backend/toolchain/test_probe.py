"""The tables of targets say what the assembler says; every exception has a reason."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from cake_backend.toolchain import nvrtc_version
from cake_backend.toolchain.probe.__main__ import excuses, main, table
from cake_backend.toolchain.probe.assemble import Answer, NoAssembler, assemble
from cake_backend.toolchain.probe.compare import Claim, Row, claims, compare, table_disagreements
from cake_backend.toolchain.probe.forms import FEATURE_FORMS, LIMIT_FORMS, Form
from cake_ir.targets import TARGETS, instruction
from cake_ir.targets.features import FEATURES

needs_nvrtc = pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable", reason="no NVRTC wheel installed")


def wrong(rows: list[Row]) -> list[str]:
    return [f"{r.claim.form.name} on {r.claim.target}: {r.answer.mark} {r.answer.message}" for r in rows if not r.agrees and not r.excused]


def test_every_feature_has_a_form_and_every_form_named_in_the_instruction_table_exists_there() -> None:
    assert {*(f.name for f in FEATURE_FORMS), "TCGEN05_K96"} == set(FEATURES)  # K = 96 is a number in a register
    assert not [f.table for f in (*FEATURE_FORMS, *LIMIT_FORMS) if f.table and not instruction(f.table, "sm_90a").known]


def test_claims_are_of_all_targets_and_every_form_is_usable_somewhere_or_is_a_negative() -> None:
    asked = claims()
    assert Counter(c.target for c in asked).keys() == set(TARGETS) and len({(c.subject, c.form, c.target) for c in asked}) == len(asked)
    features = {c.form.name for c in asked if c.subject.startswith("feature") and c.usable}
    assert features == set(FEATURES) - {"TCGEN05_K96"}


@needs_nvrtc
def test_the_assembler_takes_whatever_the_tables_offer() -> None:
    rows = compare(chosen=[c for c in claims() if c.usable])
    assert wrong(rows) == [] and all(r.answer.mark == "A" for r in rows)


@needs_nvrtc
def test_a_wrong_claim_is_found() -> None:
    tcgen05 = next(f for f in FEATURE_FORMS if f.name == "TCGEN05")
    rows = compare(chosen=[Claim("feature TCGEN05", tcgen05, "sm_120a", True), Claim("feature TCGEN05", tcgen05, "sm_100a", False)])
    assert [r.agrees for r in rows] == [False, False] and len(wrong(rows)) == 2
    assert "sm_120a" in rows[0].answer.message or "not supported" in rows[0].answer.message
    assert table_disagreements([Row(rows[0].claim, Answer(True))]) != []


@needs_nvrtc
def test_one_text_that_kills_or_fails_does_not_spoil_the_others() -> None:
    good, bad = Form("good", "bar.sync 1, 64;"), Form("bad", "no.such.instruction;")
    kills = Form("a count of 0", "mbarrier.init.shared.b64 [r0], 0;")  # NVRTC 13.0.88 dies of it, the standalone assembler takes it
    found = assemble([(good, "sm_90a"), (bad, "sm_90a"), (kills, "sm_90a"), (good, "sm_80")], believed=[True, True, False, True])
    assert [found[i].mark for i in (0, 1, 3)] == ["A", ".", "A"] and (found[2].taken or found[2].message)


def test_an_assembler_that_is_not_there_is_said() -> None:
    with pytest.raises(NoAssembler, match="no-such-assembler"):
        assemble([(FEATURE_FORMS[0], "sm_90a")], ptxas="no-such-assembler")
    assert main(["--ptxas", "no-such-assembler"]) == 2


@needs_nvrtc
@pytest.mark.slow
def test_the_whole_table_agrees_with_nvrtc() -> None:
    rows = compare()
    assert wrong(rows) == [] and table_disagreements(rows) == []
    assert set(excuses(rows)) == {r.claim.meant for r in rows if r.excused} and len(excuses(rows)) == 3, "each with its reason"
    assert {r.claim.target for r in rows if r.answer.mark == "W"} == {"sm_120a", "sm_121a"}, "the multicast advisory"
    lines = table(rows)
    assert lines[0].split() == list(TARGETS) and "...AA.. feature TCGEN05: TCGEN05" in lines


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on the path")
def test_a_standalone_assembler_gives_the_same_features() -> None:
    rows = compare(ptxas="ptxas", chosen=[c for c in claims() if c.subject.startswith(("feature", "limit"))])
    assert wrong(rows) == []
