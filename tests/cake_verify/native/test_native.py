"""The compiled form is taken only where it is the form of exactly these files, and answers as the Python does."""

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from cake_ir import native_finder as native
from cake_verify.native.expand import expanded

ROOT = native.ROOT
SAMPLE = '''"""A module with what the rewriting is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from cake_ir.record import record


@record(order=True)
class Place:
    """Two numbers."""

    row: int
    col: int = 3


@record(eq=False)
class Node:
    name: str
    below: tuple[str, ...] = field(init=False, repr=False)
    attrs: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.below = (self.name, self.name)


@record()
class Named:
    name: str
    note: str = field(default="none", compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True)
class Counter:
    seen: set[int] = field(default_factory=set)


class Asked:
    def __init__(self) -> None:
        self.times = 0

    def int(self, n: int) -> int:
        return n + 1

    @cached_property
    def answer(self) -> list[int]:
        """Worked out once."""
        self.times += 1
        return [k for k in reversed(range(3))]


class Word(str):
    __slots__ = ()


def among(x: int, more: tuple[int, ...]) -> bool:
    for k in reversed(more):
        if k == x:
            return True
    return x in (1, *more)
'''


def _run(text: str, name: str) -> dict[str, Any]:
    module = type(sys)(name)
    sys.modules[name] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module.__dict__


@pytest.fixture(scope="module")
def forms() -> tuple[dict[str, Any], dict[str, Any]]:
    return _run(SAMPLE, "sample_as_written"), _run(expanded(SAMPLE), "sample_expanded")


@pytest.mark.parametrize("asked", [
    "Place(1)", "Place(1, 2) == Place(1, 2), Place(1) == Place(2), Place(1) == (1, 3)", "hash(Place(4, 5)), hash(Named('x'))", "Place(1, 9) < Place(2), Place(2) >= Place(2), Place(2) > Place(3)",
    "Node('a').below, Node('a').attrs, Node('a') == Node('a'), Node('a')", "Named('x') == Named('x', 'y'), str(Named('x')), Named('x')", "Counter().seen is Counter().seen, Counter() == Counter()",
    "Asked().int(2), Asked().answer, (a := Asked(), a.answer, a.answer, a.times)[1:]", "Word('ab') + 'c', among(1, ()), among(2, (3, 2)), among(7, (3, 2))",
    "[f.name for f in fields(Place)], replace(Place(1), col=8), replace(Named('x', 'y'), name='z').note", "Place.__match_args__, Node.__match_args__",
])  # fmt: skip
def test_a_rewritten_module_means_what_it_did(asked: str, forms: tuple[dict[str, Any], dict[str, Any]]) -> None:
    written, rewritten = (repr(eval(asked, {**form, "fields": fields, "replace": replace})) for form in forms)
    assert written == rewritten


def test_what_the_compiler_cannot_follow_is_rewritten() -> None:
    text = expanded(SAMPLE)
    assert "@record" not in text and "slots=True" not in text and "@cached_property" not in text
    assert "in reversed(" not in text and "(1, *more)" not in text and "def int(self, n: _native_builtins.int) -> _native_builtins.int" in text


def _built(folder: Path, **other: Any) -> Path:
    """A folder as a build of these files leaves it, but for what is said."""
    native.library(folder).write_bytes(b"machine code")
    record = {**native.stamp(ROOT), "modules": [], "library": "0f1b9be17a27cf3ba9af2b1e8a1e1b29ce3d35b9d70f3fdd1d34d1f8c0c8a0d4", **other}
    (folder / "built.json").write_text(json.dumps(record), "utf-8")
    return folder


def test_a_changed_file_makes_a_build_stale(tmp_path: Path) -> None:
    files = {**native.stamp(ROOT)["files"], "cake_ir/expr.py": "0" * 64}
    assert native.read(_built(tmp_path, files=files))[1] == "cake_ir/expr.py is not what it was built from"


def test_a_file_more_or_less_makes_a_build_stale(tmp_path: Path) -> None:
    files = native.stamp(ROOT)["files"]
    assert native.read(_built(tmp_path, files={**files, "cake_ir/gone.py": "0" * 64}))[1].startswith("cake_ir/gone.py")
    assert native.read(_built(tmp_path, files={k: v for k, v in files.items() if k != "cake_verify/gates.py"}))[1].startswith("cake_verify/gates.py")


def test_another_interpreter_makes_a_build_stale(tmp_path: Path) -> None:
    assert native.read(_built(tmp_path, python="3.99.0 (elsewhere)"))[1] == "built for another interpreter, 3.99.0"


def test_another_extension_module_than_the_one_built_is_refused(tmp_path: Path) -> None:
    assert native.read(_built(tmp_path))[1] == "the extension module is not the one that was built"


def test_the_build_of_these_files_is_taken(tmp_path: Path) -> None:
    from hashlib import sha256

    assert native.read(_built(tmp_path, library=sha256(b"machine code").hexdigest()))[1] == ""


def test_without_a_build_nothing_is_found(tmp_path: Path) -> None:
    assert native.read(tmp_path) == ({}, "nothing was built")
    (tmp_path / "built.json").write_text("[]", "utf-8")
    assert native.read(tmp_path)[1] == "nothing was built"


def test_a_process_runs_python_where_it_is_told_to() -> None:
    code = "import cake_verify, cake_ir.native as n; print(n.form(), cake_verify.verify.__module__)"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "CAKE_NATIVE": "0"}, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["python", "cake_verify.gates"]


@pytest.mark.slow
@pytest.mark.skipif(native.read()[1] != "", reason=f"no compiled verifier: {native.read()[1]}")
def test_both_forms_answer_alike() -> None:
    answers = {}
    for form, value in (("python", "0"), ("native", "1")):
        done = subprocess.run([sys.executable, "-m", "cake_verify.native.same", str(ROOT)], env={**os.environ, "CAKE_NATIVE": value}, cwd=ROOT, capture_output=True, text=True, check=True)
        said, *answers[form] = done.stdout.splitlines()
        assert said == form
    assert len(answers["python"]) > 1000
    assert answers["native"] == answers["python"]
