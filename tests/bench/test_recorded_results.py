"""What the recorded runs on a GPU say: right schedules are right, every disagreement has a cause, and the pages are those of the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.verify import silicon_page
from bench.verify.others import report as others
from bench.verify.silicon_explained import FIXED
from bench.verify.silicon_report import BAD, retried

ROOT = Path(__file__).resolve().parents[2]
RESULTS, DOCS = ROOT / "bench" / "results", ROOT / "docs"
SILICON = json.loads((RESULTS / "verify-silicon.json").read_text())


def test_every_right_schedule_was_clean_on_silicon() -> None:
    assert set(SILICON["controls"]["outcomes"]) == {"clean"} and SILICON["controls"]["ran"] == SILICON["controls"]["mutants"] >= 25


def test_enough_mutants_ran_and_every_disagreement_has_a_cause() -> None:
    assert SILICON["all"]["ran"] >= 150 and SILICON["runs_each"] >= 20 and not SILICON["stopped"]
    assert SILICON["unexplained"] == [] and all(d["cause"] for d in SILICON["disagreements"])


def test_the_verifier_passes_nothing_bad_but_other_values() -> None:
    missed = [d["key"] for d in SILICON["disagreements"] if d["kind"] in ("control fails", "verifier missed")]
    assert missed == []


def test_the_schedules_that_joined_later_were_tried_too() -> None:
    later = json.loads((RESULTS / "verify-silicon-later.json").read_text())
    assert later["all"]["ran"] >= 140 and later["controls"]["outcomes"] == {"clean": 20} and later["runs_each"] >= 20 and not later["stopped"]
    assert later["all"]["bad_on_silicon"] == later["all"]["bad_and_flagged"]
    assert later["unexplained"] == [] and not [d for d in later["disagreements"] if d["kind"] in ("control fails", "verifier missed")]


@pytest.mark.parametrize(("name", "schedules", "before"), [("-unseen", 66, ("", "-later", "-flags")), ("-unseen-2", 67, ("", "-later", "-flags", "-unseen"))])
def test_unseen_mutants_of_all_schedules_were_tried_with_disturbances_inside(name: str, schedules: int, before: tuple[str, ...]) -> None:
    unseen = json.loads((RESULTS / f"verify-silicon{name}.json").read_text())
    assert unseen["all"]["ran"] >= 200 and unseen["controls"]["outcomes"] == {"clean": schedules} and unseen["runs_each"] >= 20 and not unseen["stopped"]
    earlier = [json.loads((RESULTS / f"verify-silicon{x}.json").read_text())["mutants"] for x in before]
    assert not {(m["key"], m["title"]) for m in unseen["mutants"] if m["cls"] != "control"} & {(m["key"], m["title"]) for r in earlier for m in r}
    assert unseen["unexplained"] == [] and all(d["key"] in FIXED for d in unseen["disagreements"] if d["kind"] in ("control fails", "verifier missed"))


def test_schedules_of_the_third_set_and_those_that_send_were_tried_on_the_lowering_that_fences_what_is_sent_into() -> None:
    joined = json.loads((RESULTS / "verify-silicon-joined.json").read_text())
    assert joined["all"]["ran"] >= 65 and joined["controls"]["outcomes"] == {"clean": 6} and not joined["stopped"] and joined["unexplained"] == []
    assert not [d for d in joined["disagreements"] if d["kind"] in ("control fails", "verifier missed", "simulator missed")]


def test_schedules_of_the_fourth_and_fifth_sets_were_tried_on_silicon() -> None:
    fourth = json.loads((RESULTS / "verify-silicon-fourth.json").read_text())
    assert fourth["all"]["ran"] >= 85 and fourth["controls"]["outcomes"] == {"clean": 13} and not fourth["stopped"] and fourth["unexplained"] == []
    assert [d["key"] for d in fourth["disagreements"] if d["kind"] in ("control fails", "verifier missed", "simulator missed")] == ["edge_softmax/wrong-tile/1"]


def test_schedules_of_the_sixth_set_were_tried_on_silicon() -> None:
    sixth = json.loads((RESULTS / "verify-silicon-sixth.json").read_text())
    assert sixth["all"]["ran"] >= 95 and sixth["controls"]["outcomes"] == {"clean": 12} and not sixth["stopped"] and sixth["unexplained"] == []
    assert [d["key"] for d in sixth["disagreements"] if d["kind"] in ("control fails", "verifier missed", "simulator missed")] == ["prefill_paged_loaders/drop-bounds/1"]
    assert all(key in FIXED for key in ("prefill_paged_loaders/drop-bounds/1", "edge_softmax/wrong-tile/1"))
    tf32 = json.loads((RESULTS / "verify-silicon-tf32.json").read_text())
    assert tf32["controls"]["outcomes"] == {"clean": 1} and tf32["all"]["bad_on_silicon"] == tf32["all"]["bad_and_flagged"] == 8 and tf32["unexplained"] == []


def test_schedules_of_the_seventh_set_were_tried_on_silicon() -> None:
    seventh = json.loads((RESULTS / "verify-silicon-seventh.json").read_text())
    assert seventh["all"]["ran"] >= 145 and seventh["controls"]["outcomes"] == {"clean": 12} and not seventh["stopped"] and seventh["unexplained"] == []
    assert not [d["key"] for d in seventh["disagreements"] if d["kind"] in ("control fails", "verifier missed", "simulator missed")]
    assert seventh["all"]["bad_on_silicon"] - seventh["all"]["bad_and_flagged"] == 6  # other values, which only an oracle tells


def test_schedules_of_the_eighth_set_were_tried_on_silicon() -> None:
    eighth = json.loads((RESULTS / "verify-silicon-eighth.json").read_text())
    assert eighth["all"]["ran"] >= 115 and eighth["controls"]["outcomes"] == {"clean": 7} and not eighth["stopped"] and eighth["unexplained"] == []
    assert not [d["key"] for d in eighth["disagreements"] if d["kind"] in ("control fails", "verifier missed", "simulator missed")]
    assert eighth["all"]["bad_on_silicon"] - eighth["all"]["bad_and_flagged"] == 4  # other values, which only an oracle tells


def test_a_second_try_showed_more_and_every_one_of_it_is_refused() -> None:
    again = json.loads((RESULTS / "verify-silicon-again.json").read_text())
    bad = {m["key"] for m in again["mutants"] if m["outcome"] in BAD}
    assert len(bad) >= 32 and all(m["verdict"] == "fail" for m in again["mutants"] if m["key"] in bad)
    before = retried(SILICON, {"mutants": []})
    after = retried(SILICON, again)
    assert before["all"]["harmful_shown"] == SILICON["all"]["harmful_shown"] < after["all"]["harmful_shown"] and after["all"]["harmful"] == before["all"]["harmful"]
    assert not {d["key"] for d in after["disagreements"] if d["kind"] == "not shown"} & bad


def test_the_page_of_silicon_is_the_one_of_its_results() -> None:
    assert silicon_page.page(*silicon_page.recorded()) == (DOCS / "silicon.md").read_text(), "run `python -m bench.verify.silicon_page > docs/silicon.md`"


def test_flags_between_blocks_were_tried_on_silicon_too() -> None:
    flags = json.loads((RESULTS / "verify-silicon-flags.json").read_text())
    assert flags["all"]["ran"] == flags["all"]["mutants"] >= 20 and set(flags["controls"]["outcomes"]) == {"clean"}
    assert flags["unexplained"] == [] and not [d for d in flags["disagreements"] if d["kind"] in ("control fails", "verifier missed")]


def test_the_page_of_other_tools_is_the_one_of_its_results() -> None:
    found = json.loads((RESULTS / "verify-others.json").read_text())
    assert others.page(found) == (DOCS / "other-tools.md").read_text()
    assert not any(m[t].get("caught") for m in found["sample"] for t in others.TOOLS if m["cls"] == "control")


@pytest.mark.skipif(not (RESULTS / "hardware.json").exists(), reason="not asked yet")
def test_the_page_of_the_hardware_is_the_one_of_its_results() -> None:
    from bench.hardware.page import page

    report, assembler = (json.loads((RESULTS / name).read_text()) for name in ("hardware.json", "hardware-assembler.json"))
    assert page(report, assembler) == (DOCS / "hardware.md").read_text()
