"""The repair search: what it offers verifies, and says no more than that; suggestions stand in where a rule has no edit."""

import pytest

from cake_ir import parse, specialise
from cake_verify import Question, verify_many, verify_text
from cake_verify.proposals import applied, propose
from cake_verify.repair import NOTE, search
from cake_verify.repair_chain import difference
from cake_verify.rules.examples import LOOP, TILE, edit

BROKEN = {
    "a release that is missing": ("                lm.arrive(empty, stage=s)\n", ""),
    "a wait that is missing": ("                lm.wait(full, stage=s)\n", ""),
    "a slot too late": ("lm.arrive(empty, stage=s)", "lm.arrive(empty, stage=s.prev())"),
    "an arrival too many": ("                lm.arrive(empty, stage=s)\n", "                lm.arrive(empty, stage=s)\n                lm.arrive(empty, stage=s)\n"),
    "another barrier": ("lm.arrive(empty, stage=s)", "lm.arrive(full, stage=s)"),
    "a round too many": ("            for k in lm.range(kt):\n                s = lm.step(ring)\n                lm.wait(full", "            for k in lm.range(kt + 1):\n                s = lm.step(ring)\n                lm.wait(full"),
    "a view off its pattern": ("offset=16384", "offset=16512"),
    "views that overlap": ("offset=16384", "offset=8192"),
    "a ring that is deeper than its views": ("ring = lm.pipeline(stages=2)", "ring = lm.pipeline(stages=3)"),
    "not primed": (", primed=True", ""),
    "too many registers": ("regs=232", "regs=250"),
    "no fence": ("            lm.fence_proxy()\n", ""),
    "a result that is not stored": ("            c.tma_store(C, coords=(t.n * 128, t.m * 64))\n", ""),
}


@pytest.mark.parametrize("name", BROKEN)
def test_every_offered_edit_verifies(name):
    text = edit(LOOP, BROKEN[name])
    verdict = verify_text(text, repair=True, repair_seconds=4.0)
    assert verdict.verdict == "fail"
    found = [f for f in verdict.errors[0].fixes if f.title.endswith(f"({NOTE})")]
    assert found, [e.message for e in verdict.errors]
    assert len(found) <= 3 and found[0].grade == "likely" and {f.grade for f in found[1:]} <= {"idea"}
    for fix in found:
        assert verify_text(applied(text, fix.edits)).verdict == "pass"
    assert verdict.repairs is not None and list(verdict.repairs.fixes) == found


@pytest.mark.parametrize("name", ["a slot too late", "an arrival too many", "a round too many", "a view off its pattern", "a ring that is deeper than its views", "another barrier"])
def test_the_first_edit_of_a_plain_verdict_mends_it(name):
    text = edit(LOOP, BROKEN[name])
    fix = verify_text(text).errors[0].fixes[0]
    assert fix.grade in ("certain", "likely")
    assert verify_text(applied(text, fix.edits)).verdict == "pass"


SEVERAL = {
    "two releases and a fence": (("                lm.arrive(empty, stage=s)\n", ""), ("            lm.fence_proxy()\n", "")),
    "a wait, a view that overlaps and a barrier that is not primed": (("                lm.wait(full, stage=s)\n", ""), ("offset=16384", "offset=8192"), (", primed=True", "")),
    "names that do not exist": (("lm.wait(full, stage=s)", "lm.wait(ful, stage=s)"), ("lm.mma(acc, a[s]", "lm.mma(ac, a[s]")),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_faults_are_mended_in_one_edit(name):
    text = edit(LOOP, *SEVERAL[name])
    verdict = verify_text(text, repair=True, repair_seconds=6.0)
    assert verdict.verdict == "fail" and verdict.repairs is not None and verdict.repairs.fixes, verdict.to_text()
    assert verify_text(applied(text, verdict.repairs.fixes[0].edits)).verdict == "pass"


@pytest.mark.parametrize(
    ("old", "new"),
    [("a\nb\nc", "a\nx\nc"), ("a\nb", "a\nb\nc"), ("a\nb\nc", "a\nc"), ("a\nb\nc", "b\nc\nd"), ("a", "b"), ("a\nb", "a"), ("a\nb", "x\na\nb"), ("äö\nb", "äö!\n\nb")],
)
def test_a_difference_makes_one_text_of_the_other(old, new):
    assert applied(old, difference(old, new)) == new


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("lm.wait(full", "lm.wait(ful"), ("lm.mma(acc,", "lm.mma(ac,"), ("lm.arrive(", "lm.arive("), ("stage=s, barrier=full", "stag=s, barrier=full"), ('arrive="tx"', 'arrive="txx"'),
     ("a.tma_load", "a.tma_lod"), ("t.m * 64", "t.mm * 64"), ('swizzle="128b"', 'swizzle="128"'), ("dtype=lm.bf16", "dtype=lm.bff16"), ("kt = lm.cdiv", "kt = lm.cdv")],
)  # fmt: skip
def test_a_name_that_is_nearly_right_comes_with_an_edit(right, wrong):
    text = edit(LOOP, (right, wrong))
    first = verify_text(text).errors[0]
    assert first.fixes and first.fixes[0].grade == "likely", (first.message, first.help)
    assert applied(text, first.fixes[0].edits) == LOOP


def test_a_good_text_is_not_searched():
    verdict = verify_text(LOOP, repair=True)
    assert verdict.verdict == "pass"
    assert verdict.repairs is None and "repair" not in verdict.to_json()


def test_a_search_stops_when_its_time_is_up():
    text = edit(LOOP, BROKEN["a wait that is missing"])
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    tried = []
    found = search(text, program, verify_text(text).errors, lambda new: tried.append(new) is not None, seconds=0.0)
    assert not found.fixes and found.stopped == "limit" and not tried


def test_a_search_tries_no_text_twice():
    text = edit(LOOP, BROKEN["a wait that is missing"])
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    tried: list[str] = []

    def passes(new: str) -> bool:
        tried.append(new)
        return False

    found = search(text, program, verify_text(text).errors, passes, seconds=5.0)
    assert found.stopped == "exhausted" and found.tried == len(tried) == len(set(tried))


def test_edits_near_the_fault_come_first():
    text = edit(LOOP, BROKEN["a slot too late"])
    program = specialise(parse(text).schedules[0]).program
    assert program is not None
    first = propose(text, program, verify_text(text).errors)[0]
    assert applied(text, first.edits) == LOOP


def test_edits_of_lines_with_wide_characters_fit():
    text = edit(LOOP, ("lm.arrive(empty, stage=s)", "lm.arrive(empty, stage=s.prev())  # äöü€")).replace("def gemm(", "def gemm(", 1)
    fix = verify_text(text).errors[0].fixes[0]
    assert "lm.arrive(empty, stage=s)  # äöü€" in applied(text, fix.edits)


def test_many_questions_are_answered_in_order_and_equal_ones_once():
    bad = edit(TILE, ("lm.wait(full, stage=s)", "lm.wait(fool, stage=s)"))
    answers = verify_many([Question(TILE), Question(bad), Question(TILE), Question("x = (")])
    assert [v.verdict for v in answers] == ["pass", "fail", "pass", "fail"]
    assert answers[0] is answers[2]


def test_a_candidate_that_needs_too_much_work_is_undecided_and_says_so():
    (verdict,) = verify_many([Question(LOOP)], work=100)
    assert verdict.verdict == "undecided"
    assert [d.code for d in verdict.diagnostics if d.severity == "note"] == ["S090"]


def test_plain_and_many_agree():
    texts = [edit(LOOP, change) for change in BROKEN.values()]
    many = verify_many(Question(t) for t in texts)
    assert [[e.code for e in v.errors] for v in many] == [[e.code for e in verify_text(t).errors] for t in texts]
