"""From a failure to a rule in force: trial, review, application."""

import json
from pathlib import Path

import pytest

import cake_kernels
from cake_mcp import workspace as workspaces
from cake_mcp.cli import main
from cake_mcp.operations import rules
from cake_mcp.operations.misuse import Misuse
from cake_mcp.operations.propose import Proposal, propose
from cake_mcp.operations.verify import verify_text
from cake_mcp.workspace import Workspace
from cake_verify.distilled import Check

GEMM = next(s.text for s in cake_kernels.schedules() if s.family == "gemm" and s.name == "hopper")
TOO_DEEP = {"STAGES": 9}  # more shared memory than a block can have


def check(where: str, **others: str) -> Check:
    sql = f"SELECT line, column, name AS detail FROM ring WHERE {where}"
    words = {"title": "ring is too deep", "statement": "A ring of nine stages never fits.", "message": "ring `{detail}` is too deep"}
    return rules.check_from({**words, "sql": sql, **others})


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return workspaces.create(tmp_path / ".cake")


@pytest.fixture
def failing(workspace: Workspace) -> str:
    proposed = propose(workspace, Proposal(text=GEMM, params=TOO_DEEP, task="gemm"))
    assert proposed.verdict["verdict"] == "fail"
    return proposed.candidate.id


@pytest.fixture
def passing(workspace: Workspace, failing: str) -> str:
    """A near miss: the same text with fewer stages."""
    candidate = propose(workspace, Proposal(parent=failing, params={"STAGES": 4})).candidate
    workspace.store.runs.record(candidate.id, {}, status="PASSED_UNTIMED", evidence="simulated")
    return candidate.id


def test_a_check_that_stands_its_trial_waits_for_a_person(workspace: Workspace, failing: str, passing: str) -> None:
    rule, report = rules.propose(workspace, check("name = 'ab' AND stages > 6"), [failing], [])
    assert rule is not None and rule.state == "pending"
    assert report["evidence"] == {failing: 1}
    assert report["near_misses"] == {passing: 0}  # found through the lineage
    assert report["corpus"] >= len(cake_kernels.schedules()) and not report["wrongly_rejects"]
    assert rules.approved(workspace) == ()
    assert verify_text(GEMM, params=TOO_DEEP, workspace=workspace)["diagnostics"][0]["gate"] != "distilled"


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("stages > 100", "is not rejected by the check"),
        ("stages > 1", "schedules that passed are rejected"),
        ("depth_of > 1", "no such column"),
        ("stages > 6 OR load_extension('x')", "may not do"),
        ("stages > 6 AND (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c)", "took longer than"),
    ],
)
def test_a_check_that_fails_its_trial_is_not_stored(workspace: Workspace, failing: str, passing: str, where: str, problem: str) -> None:
    rule, report = rules.propose(workspace, check(where), [failing], [])
    assert rule is None and not report["accepted"]
    assert any(problem in told for told in report["problems"]), report["problems"]
    assert workspace.store.rules.in_state("pending") == []


def test_a_stored_candidate_that_passed_protects_itself(workspace: Workspace, failing: str, passing: str) -> None:
    _, report = rules.propose(workspace, check("stages IN (9, 4) AND name = 'ab'"), [failing], [])
    assert passing in report["wrongly_rejects"]


def test_evidence_must_have_failed(workspace: Workspace, failing: str) -> None:
    fine = propose(workspace, Proposal(text=GEMM, params={"STAGES": 2}, task="gemm")).candidate.id
    with pytest.raises(Misuse, match="has not failed anywhere"):
        rules.propose(workspace, check("name = 'ab' AND stages > 6"), [fine], [])
    with pytest.raises(Misuse, match="no candidate, run or failure `c_nothing`"):
        rules.propose(workspace, check("name = 'ab' AND stages > 6"), ["c_nothing"], [])
    failure = workspace.store.failures.of(failing)[0].id
    assert rules.propose(workspace, check("name = 'ab' AND stages > 6"), [failure], [])[0] is not None


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        ({"severity": "allow"}, "can only reject"),
        ({"title": "two\nlines"}, "one line"),
        ({"sql": " "}, "one SELECT"),
        ({"message": ""}, "one line"),
    ],
)
def test_a_rule_can_only_reject_or_warn_and_is_plain_text(others: dict[str, str], problem: str) -> None:
    with pytest.raises(Misuse, match=problem):
        check("name = 'ab' AND stages > 6", **others)


def test_approval_by_a_person_puts_a_rule_in_force(
    workspace: Workspace, failing: str, passing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule, _ = rules.propose(workspace, check("stages > 3 AND stages < 5 OR stages > 6", help="fewer stages"), [failing], [])
    assert rule is None  # rejects the corpus
    rule, _ = rules.propose(workspace, check("name = 'ab' AND stages > 6", help="fewer stages"), [failing], [])
    assert rule is not None
    at = ["--workspace", str(workspace.root)]

    assert main(["review", *at]) == 0
    assert rule.id in capsys.readouterr().out
    assert main(["review", rule.id, *at]) == 0
    assert "ring WHERE name = 'ab' AND stages > 6" in capsys.readouterr().out
    assert main(["review", rule.id, "--approve", "--reason", "seen", "--reviewer", "ada", *at]) == 0
    assert "approved as R001" in capsys.readouterr().out
    assert main(["review", rule.id, "--reject", *at]) == 1
    assert "approved already" in capsys.readouterr().err

    (path,) = (workspace.root / "rules").glob("R001-*.json")
    assert json.loads(path.read_text())["approved_by"] == "ada"
    deep = GEMM.replace("STAGES=4", "STAGES=7").replace("BN=256", "BN=64")  # fits: no other gate says a word
    found = [d for d in verify_text(deep, workspace=workspace)["diagnostics"] if d["gate"] == "distilled"]
    assert [(d["code"], d["severity"], d["message"], d["help"]) for d in found] == [
        ("R001", "error", "ring `ab` is too deep", "fewer stages")
    ]
    assert deep.splitlines()[found[0]["span"]["line"] - 1].strip().startswith("ab = lm.pipeline")

    file = tmp_path / "deep.py"
    file.write_text(deep)
    assert main(["verify", str(file), *at]) == 1
    assert "error[R001]" in capsys.readouterr().out
    assert main(["explain", "R001", *at]) == 0
    assert "ring is too deep" in capsys.readouterr().out


def test_codes_are_not_reused_and_a_rule_that_broke_since_is_not_approved(workspace: Workspace, failing: str) -> None:
    first, _ = rules.propose(workspace, check("name = 'ab' AND stages > 6"), [failing], [])
    second, _ = rules.propose(workspace, check("name = 'ab' AND stages > 7", title="another"), [failing], [])
    assert first is not None and second is not None
    assert rules.approve(workspace, first.id, reviewer="ada", reason="").code == "R001"
    next((workspace.root / "rules").glob("R001*")).unlink()
    fits = propose(workspace, Proposal(text=GEMM, params={"STAGES": 8, "BN": 64}, task="gemm")).candidate.id
    workspace.store.runs.record(fits, {}, status="PASSED", evidence="measured")
    with pytest.raises(Misuse, match="no longer stands its trial"):
        rules.approve(workspace, second.id, reviewer="ada", reason="")
    third, _ = rules.propose(workspace, check("name = 'ab' AND stages > 8", title="a third"), [failing], [])
    assert third is not None
    assert rules.approve(workspace, third.id, reviewer="ada", reason="").code == "R002"


def test_rule_files_that_are_not_well_formed_are_named_and_left_out(workspace: Workspace) -> None:
    folder = workspace.root / "rules"
    (folder / "a.json").write_text("not json")
    (folder / "b.json").write_text(json.dumps(check("name = 'ab' AND stages > 6").to_json()))  # no code: nobody approved it
    good = {**check("name = 'ab' AND stages > 6").to_json(), "code": "R007"}
    (folder / "c.json").write_text(json.dumps(good))
    (folder / "d.json").write_text(json.dumps(good))
    assert [rule.code for rule in rules.approved(workspace)] == ["R007"]
    broken = rules.broken(workspace)
    assert set(broken) == {"a.json", "b.json", "d.json"}
    assert "not JSON" in broken["a.json"] and "not approved" in broken["b.json"] and "R007 is that of c.json" in broken["d.json"]


def test_a_rule_in_force_that_does_not_run_is_said_never_silent(workspace: Workspace) -> None:
    body = {**check("name = 'ab' AND stages > 6").to_json(), "code": "R009", "sql": "SELECT line, column, gone AS detail FROM ring"}
    (workspace.root / "rules" / "old.json").write_text(json.dumps(body))
    found = [d for d in verify_text(GEMM, workspace=workspace)["diagnostics"] if d["gate"] == "distilled"]
    assert [d["severity"] for d in found] == ["note"] and "does not run" in found[0]["message"]
