"""The configuration snippets of docs/server.md parse, and start the program that the package installs."""

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "server.md").read_text("utf-8")


def servers() -> list[dict]:
    found = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    found += [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
    return [next(value for key, value in snippet.items() if key in ("mcpServers", "servers", "mcp_servers"))["cake"] for snippet in found]


def test_every_snippet_starts_the_installed_program() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert len(servers()) == 4
    for server in servers():
        assert server["command"] in scripts and server["args"] == ["serve"]


def test_the_page_names_every_tool() -> None:
    from cake_mcp.tools import all_tools

    for tool in all_tools():
        assert f"`{tool.name}`" in PAGE
