"""`repair` through the tools: edits that verify, sent back as they are, and what is said of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_clients import BareServer

import cake_kernels
from cake_mcp.operations import rules
from cake_mcp.tools import all_tools
from cake_mcp.workspace import load
from cake_verify.verdict import UNCHECKED

GEMM = next(s.text for s in cake_kernels.schedules() if s.family == "gemm" and s.name == "hopper")
NO_RELEASE = GEMM.replace("lm.arrive(ab_empty, stage=lm.at(ab))", "pass", 1)
NO_FENCE = GEMM.replace("                lm.fence_proxy()\n", "")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareServer]:
    server = BareServer(tmp_path_factory.mktemp("repair") / ".cake")
    yield server
    server.close()


def call(server: BareServer, tool: str, **arguments: Any) -> dict[str, Any]:
    result = server.call(tool, **arguments)
    assert result["isError"] is False, result["content"][0]["text"]
    return result["structuredContent"]


@pytest.mark.parametrize("text", [NO_RELEASE, NO_FENCE], ids=["a release is missing", "a fence is missing"])
def test_an_edit_that_verify_found_makes_the_candidate_pass(server: BareServer, text: str) -> None:
    assert text != GEMM
    candidate = call(server, "propose_candidate", text=text, task="gemm")["candidate_id"]
    answer = call(server, "verify", candidate_id=candidate, repair=True)
    repair = answer["repair"]
    assert answer["verdict"] == "fail" and 1 <= len(repair["fixes"]) <= 3 and repair["tried"] >= len(repair["fixes"])
    assert repair["caveat"] == UNCHECKED and "repair.fixes[0]" in answer["next_actions"][0]
    assert answer["diagnostics"][0]["fixes"][0] == repair["fixes"][0]
    for fix in repair["fixes"]:
        mended = call(server, "propose_candidate", parent=candidate, edits=fix["edits"])
        assert mended["verdict"] == "pass"


def test_the_text_twin_names_the_edits_and_what_was_not_checked(server: BareServer) -> None:
    twin = server.call("verify", text=NO_FENCE, repair=True)["content"][0]["text"]
    assert UNCHECKED in twin and "lm.fence_proxy()" in twin


def test_nothing_is_searched_unless_it_is_asked_for_and_the_verdict_is_fail(server: BareServer) -> None:
    assert "repair" not in call(server, "verify", text=NO_FENCE)
    assert "repair" not in call(server, "verify", text=GEMM, repair=True)


def test_a_text_that_no_edit_mends_says_how_much_was_tried(server: BareServer) -> None:
    answer = call(server, "verify", text="x = 1\n", repair=True)
    assert answer["repair"]["fixes"] == [] and answer["repair"]["stopped"] == "exhausted"


def test_a_rejection_without_a_likely_fix_points_to_the_search(server: BareServer) -> None:
    text = "x = 1\n"
    assert any("repair=true" in action for action in call(server, "verify", text=text)["next_actions"])
    assert any("repair=true" in action for action in call(server, "propose_candidate", text=text)["next_actions"])
    assert not any("repair=true" in action for action in call(server, "verify", text=NO_FENCE)["next_actions"])


def test_diagnose_offers_edits_for_a_candidate_that_the_gates_reject(server: BareServer) -> None:
    candidate = call(server, "propose_candidate", text=NO_RELEASE, task="gemm")["candidate_id"]
    run = call(server, "compile_and_run", candidate_id=candidate, device="simulate")
    assert run["status"] == "STATIC_REJECT"
    answer = call(server, "diagnose", run_id=run["run_id"])
    fix = answer["repair"]["fixes"][0]
    assert "repair.fixes[0]" in answer["next_actions"][0] and answer["repair"]["caveat"] == UNCHECKED
    assert call(server, "propose_candidate", parent=candidate, edits=fix["edits"])["verdict"] == "pass"
    assert "repair" not in call(server, "diagnose", run_id=run["run_id"], repair=False)


def test_an_edit_that_a_rule_of_the_workspace_refuses_is_not_offered(tmp_path: Path) -> None:
    own = BareServer(tmp_path / ".cake")
    deep = call(own, "propose_candidate", text=GEMM, task="gemm", params={"STAGES": 9})["candidate_id"]
    proposal = {
        "title": "ring too deep", "statement": "s", "message": "ring `{detail}` is too deep", "evidence": [deep],
        "sql": "SELECT line, column, name AS detail FROM ring WHERE name = 'ab' AND stages > 6",
    }  # fmt: skip
    rule = call(own, "propose_rule", **proposal)
    rules.approve(load(tmp_path / ".cake"), rule["rule_id"], reviewer="ada", reason="")
    bad = call(own, "propose_candidate", text=NO_FENCE, task="gemm", params={"STAGES": 8, "BN": 64})["candidate_id"]
    answer = call(own, "verify", candidate_id=bad, repair=True)
    assert answer["verdict"] == "fail" and answer["repair"]["fixes"] == []
    own.close()


def test_the_schemas_of_what_a_search_found_stay_small() -> None:
    from cake_mcp.binding import flat_schema

    for tool in all_tools():
        schema = flat_schema(tool.answer)["properties"].get("repair")
        assert (schema is not None) == (tool.name in ("verify", "diagnose"))
        assert schema is None or len(json.dumps(schema)) < 800
