"""server.json is what the MCP registry accepts, and agrees with the package it names."""

import json
import re
import tomllib
from pathlib import Path

import cake_mcp

ROOT = Path(__file__).resolve().parents[2]
ENTRY = json.loads((ROOT / "server.json").read_text("utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

ENTRY_KEYS = {"$schema", "name", "title", "description", "version", "packages", "remotes", "repository", "websiteUrl", "icons", "_meta"}
PACKAGE_KEYS = {
    "registryType", "registryBaseUrl", "identifier", "version", "runtimeHint", "transport", "runtimeArguments", "packageArguments",
    "environmentVariables", "fileSha256",
}  # fmt: skip
ARGUMENT_KEYS = {
    "type",
    "name",
    "value",
    "valueHint",
    "description",
    "isRequired",
    "isSecret",
    "default",
    "format",
    "choices",
    "isRepeated",
}
REGISTRY_TYPES = {"npm", "pypi", "nuget", "cargo", "oci", "mcpb", "go"}


def test_the_entry_has_the_required_fields_and_no_unknown_one() -> None:
    assert ENTRY["$schema"] == "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
    assert set(ENTRY) <= ENTRY_KEYS
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", ENTRY["name"]) and len(ENTRY["name"]) <= 200
    assert 1 <= len(ENTRY["description"]) <= 100
    assert 1 <= len(ENTRY["title"]) <= 100


def test_versions_agree_everywhere_and_are_exact() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", ENTRY["version"])
    assert {ENTRY["version"], PROJECT["version"], cake_mcp.__version__, *(p["version"] for p in ENTRY["packages"])} == {ENTRY["version"]}


def test_each_package_is_one_the_registry_accepts() -> None:
    for package in ENTRY["packages"]:
        assert set(package) <= PACKAGE_KEYS
        assert package["registryType"] in REGISTRY_TYPES
        assert package["identifier"] == PROJECT["name"]
        assert package["transport"]["type"] in {"stdio", "streamable-http", "sse"}
        for argument in package.get("packageArguments", []):
            assert set(argument) <= ARGUMENT_KEYS
            assert argument["type"] in {"positional", "named"}
            assert ("name" in argument) if argument["type"] == "named" else ("value" in argument or "valueHint" in argument)


def test_the_readme_carries_the_ownership_marker() -> None:
    readme = (ROOT / PROJECT["readme"]).read_text("utf-8")
    assert re.search(rf"mcp-name: {re.escape(ENTRY['name'])}(\s|-->)", readme)


def test_the_named_program_is_one_the_package_installs() -> None:
    assert PROJECT["scripts"]["cake"] == PROJECT["scripts"]["cake-mcp"] == "cake_mcp.cli:main"
