"""The loop through the tools, on real schedules, with the simulator."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_clients import BareServer

import cake_kernels
from cake_mcp.operations import rules
from cake_mcp.workspace import load

TEXT = {f"{s.family}/{s.name}": s.text for s in cake_kernels.schedules()}
GEMM, RMSNORM = TEXT["gemm/hopper"], TEXT["rmsnorm/hopper"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareServer]:
    server = BareServer(tmp_path_factory.mktemp("loop") / ".cake")
    yield server
    server.close()


def call(server: BareServer, tool: str, **arguments: Any) -> dict[str, Any]:
    result = server.call(tool, **arguments)
    assert result["isError"] is False, result["content"][0]["text"]
    return result["structuredContent"]


def evaluated(server: BareServer, **arguments: Any) -> dict[str, Any]:
    answer = call(server, "compile_and_run", device="simulate", **arguments)
    while answer.get("job", {}).get("state") in ("queued", "running"):
        answer = call(server, "get_job", job_id=answer["job"]["job_id"], wait_s=15)
    return answer


def resource(server: BareServer, uri: str) -> str:
    return server.request("resources/read", {"uri": uri})["result"]["contents"][0]["text"]


def test_the_same_proposal_is_one_candidate_and_the_same_program_is_recognised(server: BareServer) -> None:
    first = call(server, "propose_candidate", text=GEMM, task="gemm")
    again = call(server, "propose_candidate", text=GEMM, task="gemm")
    assert (first["new"], again["new"]) == (True, False) and first["candidate_id"] == again["candidate_id"]
    renamed = call(server, "propose_candidate", text="# another comment\n" + GEMM.replace("smem_a", "tile_of_a"), task="gemm")
    assert renamed["new"] and renamed["same_program_as"] == [first["candidate_id"]]
    explicit = call(server, "propose_candidate", parent=first["candidate_id"], params={"STAGES": 4})
    assert first["candidate_id"] in explicit["same_program_as"]


def test_a_variant_is_a_parent_and_a_number_and_null_takes_it_back(server: BareServer) -> None:
    parent = call(server, "propose_candidate", text=GEMM, task="gemm")
    child = call(server, "propose_candidate", parent=parent["candidate_id"], params={"STAGES": 3}, rationale="less shared memory")
    assert child["params"]["STAGES"] == 3 and child["verdict"] == "pass" and child["task"] == "gemm"
    grandchild = call(server, "propose_candidate", parent=child["candidate_id"], params={"STAGES": None, "GROUP": 4})
    assert grandchild["params"]["STAGES"] == 4 and grandchild["params"]["GROUP"] == 4
    shown = json.loads(resource(server, f"cake://candidate/{child['candidate_id']}"))
    assert shown["lineage"] == [{"parent": parent["candidate_id"], "edits": [], "rationale": "less shared memory"}]
    assert shown["text"] == GEMM and shown["children"] == [grandchild["candidate_id"]]


def test_fixes_are_sent_back_as_they_are_until_every_gate_passes(server: BareServer) -> None:
    broken = GEMM.replace("                lm.fence_proxy()\n", "").replace("stage=s.prev()", "stage=s")
    candidate = call(server, "propose_candidate", text=broken, task="gemm")
    gates = []
    for _ in range(4):
        if candidate["verdict"] == "pass":
            break
        error = candidate["diagnostics"][0]
        gates.append(error["gate"])
        candidate = call(server, "propose_candidate", parent=candidate["candidate_id"], edits=error["fixes"][0]["edits"])
    assert candidate["verdict"] == "pass" and set(gates) == {"safety"}
    original = call(server, "propose_candidate", text=GEMM, task="gemm")["candidate_id"]
    assert original in (candidate["candidate_id"], *candidate["same_program_as"])


def test_verify_says_on_which_targets_a_text_would_run_when_asked(server: BareServer) -> None:
    assert call(server, "verify", text=GEMM).get("portability") is None
    answer = call(server, "verify", text=GEMM, portability=True)
    found = {p["target"]: p for p in answer["portability"]}
    assert answer["verdict"] == "pass" and len(found) == 7 and [t for t, p in found.items() if p["verdict"] == "pass"] == ["sm_90a"]
    assert all(p["why"] and p["why"][0].startswith("line ") for t, p in found.items() if t != "sm_90a")


def test_a_schedule_that_does_not_fit_its_task_is_told_where(server: BareServer) -> None:
    answer = call(server, "propose_candidate", text=RMSNORM.replace("eps: LM.f32", "epz: LM.f32").replace("eps)", "epz)"), task="rmsnorm")
    assert answer["verdict"] == "fail"
    found = answer["diagnostics"][0]
    assert "epz" in found["message"] and "eps" in found["help"] and found["span"]["line"] > 1


def test_an_output_of_the_task_that_nothing_writes_is_told_where_it_is_declared(server: BareServer) -> None:
    text = TEXT["add_rmsnorm/hopper"]
    line = next(x for x in text.split("\n") if "lm.store(" in x)
    without = text.replace(line, line[: len(line) - len(line.lstrip())] + "pass")
    task = next(name for name in json.loads(resource(server, "cake://tasks")) if name == "add_rmsnorm")
    answer = call(server, "propose_candidate", text=without, task=task)
    assert answer["verdict"] == "fail"
    assert any("nothing writes" in d["message"] and "output of task" in d["message"] for d in answer["diagnostics"]), answer["diagnostics"]


def test_an_evaluation_is_labelled_done_once_and_can_be_diagnosed(server: BareServer) -> None:
    candidate = call(server, "propose_candidate", text=RMSNORM, task="rmsnorm")["candidate_id"]
    answer = evaluated(server, candidate_id=candidate)
    assert answer["ok"] and answer["status"] == "PASSED_UNTIMED" and answer["evidence"] == "simulated"
    assert answer["numerics"]["label"] == "simulated" and answer["compile"]["label"] == "compiled" and "timing" not in answer
    assert answer["compile"]["spill_stores"] >= 0 and answer["compile"]["registers"] > 0
    assert evaluated(server, candidate_id=candidate)["run_id"] == answer["run_id"]
    diagnosis = call(server, "diagnose", candidate_id=candidate)
    assert diagnosis["run_id"] == answer["run_id"] and diagnosis["ok"]
    record = json.loads(resource(server, answer["resource"]))
    assert f"{answer['resource']}/kernel.cu" in record["artefacts"]
    assert "__global__" in resource(server, f"{answer['resource']}/kernel.cu")
    assert "binary" in resource(server, f"{answer['resource']}/kernel.cubin")


def test_wrong_numbers_are_a_normal_answer_that_says_where(server: BareServer) -> None:
    wrong = RMSNORM.replace("1.0 / D", "2.0 / D")
    assert wrong != RMSNORM
    candidate = call(server, "propose_candidate", text=wrong, task="rmsnorm")
    assert candidate["verdict"] == "pass"
    answer = evaluated(server, candidate_id=candidate["candidate_id"])
    assert not answer["ok"] and answer["status"] == "INCORRECT_NUMERICAL"
    assert answer["numerics"]["wrong"] > 0 and answer["numerics"]["failing"]
    assert not any(set(case) - {"heldout", "status"} for case in answer["numerics"]["failing"] if case.get("heldout"))
    diagnosis = call(server, "diagnose", run_id=answer["run_id"])
    assert diagnosis["findings"][0]["id"].startswith("W")


def test_a_rejected_kernel_is_never_compiled(server: BareServer) -> None:
    broken = GEMM.replace("                lm.fence_proxy()\n", "")
    candidate = call(server, "propose_candidate", text=broken, task="gemm")["candidate_id"]
    answer = evaluated(server, candidate_id=candidate)
    assert answer["status"] == "STATIC_REJECT" and "compile" not in answer


def test_ranking_finds_the_cliff_and_explains_what_it_leaves_out(server: BareServer) -> None:
    parent = call(server, "propose_candidate", text=GEMM, task="gemm")["candidate_id"]
    two = call(server, "propose_candidate", parent=parent, params={"STAGES": 2})["candidate_id"]
    nine = call(server, "propose_candidate", parent=parent, params={"STAGES": 9})["candidate_id"]
    answer = call(server, "rank", candidate_ids=[two, nine, parent], budget=1)
    groups = {place["candidate_id"]: place["group"] for place in answer["places"]}
    assert groups[parent] < groups[two] and set(answer["rejected"]) == {nine}
    assert answer["run_these"][0]["candidate_id"] == parent and answer["evidence"] == "predicted"


def test_a_rule_in_force_stops_a_kernel_before_it_is_compiled(tmp_path: Path) -> None:
    server = BareServer(tmp_path / ".cake")
    deep = call(server, "propose_candidate", text=GEMM, task="gemm", params={"STAGES": 9})
    proposal = {
        "title": "ring too deep", "statement": "s", "message": "ring `{detail}` is too deep", "evidence": [deep["candidate_id"]],
        "sql": "SELECT line, column, name AS detail FROM ring WHERE name = 'ab' AND stages > 6",
    }  # fmt: skip
    rule = call(server, "propose_rule", **proposal)
    assert rule["ok"] and rule["state"] == "pending"
    rules.approve(load(tmp_path / ".cake"), rule["rule_id"], reviewer="ada", reason="")
    candidate = call(server, "propose_candidate", text=GEMM, task="gemm", params={"STAGES": 8, "BN": 64})
    assert candidate["verdict"] == "fail" and candidate["diagnostics"][0]["code"] == "R001"
    answer = evaluated(server, candidate_id=candidate["candidate_id"])
    assert answer["status"] == "STATIC_REJECT" and "R001" in answer["summary"] and "compile" not in answer
    assert "ring too deep" in resource(server, "cake://codes/R001")
    server.close()


def test_the_reference_resources_are_there(server: BareServer) -> None:
    assert "lm.tma_load" in resource(server, "cake://language") or "tma_load" in resource(server, "cake://language")
    assert "sm_90a" in resource(server, "cake://targets")
    assert {"gemm", "kmeans_assign", "rmsnorm"} <= set(json.loads(resource(server, "cake://tasks")))
    assert "barrier_role" in resource(server, "cake://facts/schema")


@pytest.mark.parametrize("device", ["fpga", "gpu:x", "H300"])
def test_an_unknown_device_is_misuse(server: BareServer, device: str) -> None:
    candidate = call(server, "propose_candidate", text=RMSNORM, task="rmsnorm")["candidate_id"]
    result = server.call("compile_and_run", candidate_id=candidate, device=device)
    assert result["isError"] and "no device" in result["content"][0]["text"]


def test_every_code_is_a_resource(server: BareServer) -> None:
    from cake_verify.rule import pages

    for code, page in pages().items():
        assert resource(server, f"cake://codes/{code}") == page.to_markdown()
