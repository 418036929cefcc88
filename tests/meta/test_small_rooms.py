"""One job a file: size budget, names that say what is inside, no trace of a particular machine."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE_FOLDERS = ("cake_ir", "cake_verify", "cake_backend", "cake_kernels", "cake_mcp", "bench")
BUDGET = 400

# Files that may be longer, each with its reason.
LONGER: dict[str, str] = {}

VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "stuff", "tools_misc"}

# Paths that exist on one machine only have no place in a repository. Spelt in pieces so that this file passes its own test.
MACHINE_PATHS = tuple(re.compile(pattern) for pattern in ("/wor" + "k/", "/ro" + "ot/", "/home/[a-z]+/"))


def _files(*suffixes: str, folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        base = ROOT / folder
        for path in sorted(base.rglob("*")):
            if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts:
                yield path


def test_no_source_file_is_over_the_budget() -> None:
    over = {}
    for path in _files(".py", folders=CODE_FOLDERS):
        name = str(path.relative_to(ROOT))
        lines = path.read_text("utf-8").count("\n")
        if lines > BUDGET and name not in LONGER:
            over[name] = lines
    assert not over, f"over {BUDGET} lines: {over}"


def test_the_list_of_longer_files_has_no_stale_entry() -> None:
    stale = [name for name in LONGER if not (ROOT / name).exists() or (ROOT / name).read_text("utf-8").count("\n") <= BUDGET]
    assert not stale


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = [
        str(path.relative_to(ROOT))
        for path in _files(".py", folders=(*CODE_FOLDERS, "tests"))
        if VAGUE_NAMES & {path.stem, *(part for part in path.relative_to(ROOT).parts[:-1])}
    ]
    assert not vague


def test_no_file_mentions_the_path_of_one_machine() -> None:
    found = []
    for path in _files(".py", ".md", ".json", ".toml", ".cu", folders=(*CODE_FOLDERS, "tests", "docs", "tactics")):
        text = path.read_text("utf-8")
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for pattern in MACHINE_PATHS if (match := pattern.search(text))]
    assert not found
