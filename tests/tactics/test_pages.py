"""Every tactic's schedules verify, its precondition tells them apart, and the cost model agrees where it has an opinion."""

from pathlib import Path

import pytest

from cake_backend.cost import predict
from cake_backend.cost.rank import certain
from cake_backend.diagnose import CATALOGUE, diagnose
from cake_backend.tactic import Tactic, TacticError, called_for, load_tactics, read_tactic
from cake_ir import parse, specialise
from cake_ir.program import Program
from cake_verify import verify_text

FOLDER = Path(__file__).resolve().parents[2] / "tactics"
PAGES = sorted(FOLDER.glob("*.md"))


def _program(text: str) -> Program:
    done = specialise(parse(text, "tactic").schedule(None), {})
    assert done.program is not None, done.faults
    return done.program


@pytest.fixture(params=PAGES, ids=lambda p: p.stem)
def page(request: pytest.FixtureRequest) -> Tactic:
    return read_tactic(request.param.read_text("utf-8"))


def test_there_are_at_least_five_pages_named_after_their_tactic() -> None:
    assert len(PAGES) >= 5
    assert [t.name for t in load_tactics(FOLDER)] == [p.stem for p in PAGES]


def test_both_schedules_verify(page: Tactic) -> None:
    for text in (page.before, page.after):
        verdict = verify_text(text)
        assert verdict.verdict == "pass", [d.to_json() for d in verdict.diagnostics]


def test_the_schedules_differ(page: Tactic) -> None:
    from cake_ir.canonical import content_hash

    assert content_hash(_program(page.before)) != content_hash(_program(page.after))


def test_the_precondition_holds_before_and_not_after(page: Tactic) -> None:
    if not page.precondition:
        assert page.findings, "without a precondition a diagnosis must find it"
        return
    hits = page.hits(_program(page.before))
    assert hits and all(h.line >= 1 and h.detail for h in hits)
    assert page.hits(_program(page.after)) == []


def test_findings_are_of_the_catalogue_and_found_before_but_not_after(page: Tactic) -> None:
    assert set(page.findings) <= set(CATALOGUE)
    if not page.findings:
        return
    record = {"status": "PASSED_UNTIMED", "prediction": {"shapes": [{"axes": page.arguments}]}}
    assert set(page.findings) & {f.id for f in diagnose(record, _program(page.before))}
    assert not set(page.findings) & {f.id for f in diagnose(record, _program(page.after))}


def test_the_cost_model_never_predicts_that_the_tactic_hurts(page: Tactic) -> None:
    before, after = (predict(_program(text), page.arguments) for text in (page.before, page.after))
    assert not certain(before, after, 0.0)


def test_evidence_names_where_it_was_measured(page: Tactic) -> None:
    assert "H200" in page.evidence or "compiled" in page.evidence
    assert any(c.isdigit() for c in page.effect)


def test_a_finding_leads_to_its_tactic() -> None:
    assert [t.name for t in called_for(load_tactics(FOLDER), ["B04", "B01"])] == ["ring-depth"]


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("# nothing", "front matter"),
        ("---\nname: x\n---\nbody", "lacks title"),
        ("---\nnonsense\n---\nbody", "no line of front matter"),
    ],
)
def test_a_page_that_is_no_tactic_is_refused_with_the_reason(page: str, told: str) -> None:
    with pytest.raises(TacticError, match=told):
        read_tactic(page)
