"""Every code has its page, and every page's examples do what it says."""

import re
from pathlib import Path

import pytest

from cake_ir import parse, specialise
from cake_verify import explain, verify_text
from cake_verify.pages import files
from cake_verify.rule import ROOMS, pages, room

ROOT = Path(__file__).resolve().parents[2]
ALL = [rule.page for name in ROOMS for rule in room(name)]
STAND_INS = {rule.page.code: rule.check for name in ROOMS for rule in room(name) if rule.stands_in}
# Codes whose example cannot be written: what they report must not happen.
NO_EXAMPLE = {"N066", "N999", "Q013", "Q022"}


@pytest.mark.parametrize("page", ALL, ids=lambda p: p.code)
def test_the_failing_example_gives_the_code(page):
    if page.code in NO_EXAMPLE:
        pytest.skip("no text gives it by itself")
    verdict = verify_text(page.failing, params=dict(page.params))
    if page.code in STAND_INS:
        assert verdict.verdict == "fail"  # by the safety gate
        program = specialise(parse(page.failing).schedules[0]).program
        assert [fault.code for fault in STAND_INS[page.code](program)] == [page.code]
        return
    found = [d for d in verdict.diagnostics if d.code == page.code]
    assert found, [f"{d.code} {d.message}" for d in verdict.diagnostics]
    assert found[0].severity == page.severity
    assert page.severity != "error" or verdict.verdict == "fail"


@pytest.mark.parametrize("page", ALL, ids=lambda p: p.code)
def test_the_passing_example_has_no_error(page):
    verdict = verify_text(page.passing)
    assert not verdict.errors, [f"{d.code} {d.message}" for d in verdict.errors]
    assert page.code not in {d.code for d in verdict.diagnostics}


@pytest.mark.parametrize("page", ALL, ids=lambda p: p.code)
def test_an_error_points_into_the_text_and_says_one_thing(page):
    verdict = verify_text(page.failing, params=dict(page.params))
    for d in verdict.diagnostics:
        assert 1 <= d.span.line <= len(verdict.lines)
        assert d.message and not d.message.endswith(".") and "\n" not in d.message
        assert not re.search(r"\b(illegal|please|failed to)\b", d.message)


def test_every_code_in_the_sources_has_a_page():
    known = set(pages())
    used = {}
    for package in ("cake_ir", "cake_verify"):
        for path in (ROOT / package).rglob("*.py"):
            for code in re.findall(r'"([NHDSQP]\d{3})"', path.read_text("utf-8")):
                used.setdefault(code, path.name)
    letters = "NHDQP" + ("S" if room("safety") else "")
    missing = {code: name for code, name in used.items() if code[0] in letters and code not in known}
    assert not missing


def test_a_page_lies_in_the_file_and_folder_that_its_code_names():
    for name in ROOMS:
        folder = ROOT / "cake_verify" / "rules" / name
        stems = {path.stem for path in folder.glob("[a-z][0-9]*.py")}
        codes = {rule.page.code.lower() for rule in room(name)}
        assert {stem.split("_")[0] for stem in stems} == codes


def test_pages_say_what_why_and_show_both_examples():
    for page in ALL:
        assert page.title and page.statement.endswith(".") and page.why.endswith("."), page.code
        text = explain(page.code.lower())
        assert text is not None and text.count("```python") == 2


def test_an_unknown_code_has_no_page():
    assert explain("N998") is None
    assert explain("") is None
    assert explain("Z001") is None


def test_the_committed_pages_are_current():
    folder = ROOT / "docs" / "codes"
    assert {p.name: p.read_text("utf-8") for p in folder.glob("*.md")} == files(), "run: python -m cake_verify.pages docs/codes"
