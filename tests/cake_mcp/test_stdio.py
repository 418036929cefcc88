"""The server as a client meets it: a process on standard input and output."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp_clients import BareServer, over_stdio


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareServer]:
    server = BareServer(tmp_path_factory.mktemp("stdio") / ".cake")
    yield server
    server.close()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_both_protocol_eras_are_answered(tmp_path: Path, mode: Literal["legacy", "auto"]) -> None:
    async def session() -> None:
        async with over_stdio(tmp_path / ".cake", mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools)[:2] == ["propose_candidate", "verify"]
            assert tools["verify"].annotations is not None and tools["verify"].annotations.read_only_hint is True
            assert tools["verify"].output_schema is not None
            result = await client.call_tool("get_job", {"job_id": "j_nothing"})
            assert result.is_error
            resources = {str(resource.uri) for resource in (await client.list_resources()).resources}
            assert {"cake://language", "cake://targets"} <= resources

    anyio.run(session)


def test_read_only_leaves_the_writing_tools_out(tmp_path: Path) -> None:
    async def session() -> None:
        async with over_stdio(tmp_path / ".cake", "--read-only") as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert "verify" in names and not names & {"propose_candidate", "compile_and_run", "propose_rule", "cancel_job"}

    anyio.run(session)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("verify", {"txt": "x"}, "no argument `txt`; did you mean `text`?"),
        ("verify", {"text": 7}, "`text`: input should be a valid string, found 7"),
        ("verify", {}, "give either `candidate_id` or `text`"),
        ("verify", {"candidate_id": "c_nothing"}, "no candidate `c_nothing`"),
        ("get_job", {"job_id": "j_nothing", "wait_s": 1e9}, "`wait_s`: input should be less than or equal to 15"),
        ("get_job", {}, "`job_id`: field required"),
        ("cancel_job", {"job_id": "j_nothing"}, "no job `j_nothing`"),
        ("compile_and_run", {"candidate_id": "c_nothing"}, "no candidate `c_nothing`"),
        ("compile_and_run", {"candidate_id": "c_nothing", "shapes": "all"}, "`shapes`: input should be a valid list"),
        ("rank", {"candidate_ids": []}, "`candidate_ids`: list should have at least 1 item"),
        ("rank", {"candidate_ids": ["c_nothing"]}, "no candidate `c_nothing`"),
        ("diagnose", {}, "give either `run_id` or `candidate_id`"),
        ("diagnose", {"run_id": "r_nothing"}, "no run `r_nothing`"),
        ("propose_rule", {"title": "t", "statement": "s", "sql": "SELECT 1", "message": "m", "evidence": ["c_nothing"]}, "no candidate"),
        ("propose_candidate", {}, "nothing was proposed"),
        ("propose_candidate", {"parent": "c_nothing", "params": {"BM": 64}}, "no candidate `c_nothing`"),
        ("propose_candidate", {"text": "x", "edits": [{"find": "x", "replace": "y"}]}, "this call has both"),
        ("nothing", {}, "Unknown tool"),
    ],
)
def test_misuse_is_an_error_in_words_that_help(server: BareServer, tool: str, arguments: dict[str, Any], expected: str) -> None:
    result = server.call(tool, **arguments)
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert expected in text
    assert "Traceback" not in text and "/" not in text.split("cake://")[0] and "pydantic" not in text


def test_the_wire_carries_nothing_but_the_protocol(tmp_path: Path) -> None:
    server = BareServer(tmp_path / ".cake", PYTHONIOENCODING="cp1252")
    server.request("tools/list")
    server.call("verify", text="print('hello')\nimport os; os.system('echo loud')\n# naïve λ 🎂")
    assert server.close() == 0
    assert server.lines
    for line in server.lines:
        assert json.loads(line)["jsonrpc"] == "2.0"


def test_a_text_that_looks_like_json_stays_text(server: BareServer) -> None:
    for text in ('{"a": 1}', "null", "123", '"x"', "[1]\r\n\t"):
        result = server.call("verify", text=text)
        assert result["isError"] is False, result
        assert result["structuredContent"]["verdict"] == "fail"
        assert result["structuredContent"]["diagnostics"][0]["gate"] == "construct"


def test_objects_sent_as_json_text_are_understood(server: BareServer) -> None:
    result = server.call("verify", text="x = 1", params='{"BM": 64}', max_diagnostics="3")
    assert result["isError"] is False, result
    result = server.call("verify", text="x = 1", params='"BM"')
    assert result["isError"] is True


def test_the_text_twin_says_nothing_that_the_structured_answer_lacks(server: BareServer) -> None:
    result = server.call("verify", text="import os\nwhile True: pass\n")
    structured = json.dumps(result["structuredContent"], ensure_ascii=False)
    lines = result["content"][0]["text"].splitlines()
    assert lines[0] == result["structuredContent"]["summary"]
    for diagnostic in result["structuredContent"]["diagnostics"]:
        assert any(diagnostic["code"] in line for line in lines)
    for line in lines[1:]:
        for prefix in ("next: ", "  help: "):
            if line.startswith(prefix):
                assert json.dumps(line.removeprefix(prefix), ensure_ascii=False)[1:-1] in structured


def test_an_unknown_resource_is_a_protocol_error(server: BareServer) -> None:
    for uri in ("cake://candidate/c_nothing", "cake://codes/X999", "cake://run/r_nothing", "cake://run/..%2F..%2Fetc/passwd"):
        assert "error" in server.request("resources/read", {"uri": uri})


def test_ids_outlive_the_server(tmp_path: Path) -> None:
    first = BareServer(tmp_path / ".cake")
    proposed = first.call("propose_candidate", text="not a schedule (")["structuredContent"]
    first.process.kill()
    first.close()
    second = BareServer(tmp_path / ".cake")
    again = second.call("verify", candidate_id=proposed["candidate_id"])["structuredContent"]
    assert again["verdict"] == "fail" and again["candidate_id"] == proposed["candidate_id"]
    assert second.call("propose_candidate", text="not a schedule (")["structuredContent"]["new"] is False
    second.close()
