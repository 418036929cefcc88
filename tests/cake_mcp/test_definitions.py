"""What the tool list looks like to a client, and what it costs."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from cake_mcp.binding import ToolSpec, flat_schema
from cake_mcp.server import INSTRUCTIONS, WRITING
from cake_mcp.tools import all_tools

TOOLS = {tool.name: tool for tool in all_tools()}
CORE = {"propose_candidate", "verify", "rank", "compile_and_run", "diagnose", "propose_rule"}


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from nodes(item)


def inputs(tool: ToolSpec) -> dict[str, Any]:
    return flat_schema(tool.arguments)


def test_there_are_the_six_tools_and_at_most_two_more() -> None:
    assert set(TOOLS) - CORE <= {"get_job", "cancel_job"}
    assert set(TOOLS) >= CORE


def test_names_fit_every_client() -> None:
    for name in TOOLS:
        assert re.fullmatch(r"[a-z_]{3,24}", name)
        assert len(f"mcp__plugin_cake_cake__{name}") <= 60


def test_descriptions_say_enough_and_not_too_much() -> None:
    for tool in TOOLS.values():
        assert 80 <= len(tool.description) <= 1500, tool.name
        assert tool.description.isascii()
    assert len(INSTRUCTIONS) <= 1500 and INSTRUCTIONS.isascii()


def test_definitions_cost_an_agent_little_context() -> None:
    characters = sum(len(tool.description) + len(json.dumps(inputs(tool))) for tool in TOOLS.values())
    assert characters < 16_000  # about 4,000 tokens


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_input_schemas_stay_in_the_subset_that_every_client_reads(name: str) -> None:
    schema = inputs(TOOLS[name])
    assert schema["type"] == "object" and schema["additionalProperties"] is False and isinstance(schema["properties"], dict)
    assert not {"anyOf", "oneOf", "allOf", "$ref", "$defs"} & set(schema)
    assert not any("$ref" in node or "$defs" in node or "anyOf" in node for node in nodes(schema))


@pytest.mark.parametrize("name", sorted(TOOLS))
@pytest.mark.parametrize("side", ["arguments", "answer"])
def test_every_field_is_described(name: str, side: str) -> None:
    undescribed = []
    for node in nodes(flat_schema(getattr(TOOLS[name], side))):
        properties = node.get("properties")
        if isinstance(properties, dict) and node.get("type") == "object":
            undescribed += [key for key, value in properties.items() if not value.get("description")]
    assert not undescribed


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_answers_begin_with_a_summary_and_end_with_what_to_do(name: str) -> None:
    fields = list(TOOLS[name].answer.model_fields)
    assert fields[0] == "summary" and fields[1] == "ok"
    assert "next_actions" in fields


def test_numbers_are_bounded() -> None:
    for tool in TOOLS.values():
        for key, node in inputs(tool)["properties"].items():
            if node.get("type") in ("integer", "number"):
                assert {"minimum", "maximum"} <= set(node), f"{tool.name}.{key}"
            if node.get("type") == "array":
                assert "maxItems" in node, f"{tool.name}.{key}"


def test_hints_are_true() -> None:
    assert {name for name, tool in TOOLS.items() if not tool.read_only} == WRITING
    assert {name for name, tool in TOOLS.items() if tool.destructive} == {"cancel_job"}
    assert all(tool.idempotent for tool in TOOLS.values())


def test_no_tool_can_approve() -> None:
    for tool in TOOLS.values():
        assert "approve" not in tool.name
        assert not any("approve" in key or "decision" in key for key in inputs(tool)["properties"])


def test_building_the_server_imports_nothing_heavy() -> None:
    script = (
        "import sys; from pathlib import Path; from cake_mcp.server import build; from cake_mcp.state import ServerState\n"
        "from cake_mcp.workspace import Workspace\n"
        "build(ServerState(Workspace(Path('nowhere'))))\n"
        "heavy = ('numpy', 'ml_dtypes', 'cuda', 'sqlite_utils', 'ray', 'cake_backend', 'cake_kernels', 'cake_ir', 'cake_verify')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
