"""Imports point one way: cake_ir <- cake_verify <- cake_backend <- cake_kernels <- cake_mcp."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("cake_ir", "cake_verify", "cake_backend", "cake_kernels", "cake_mcp")

# What these packages may import while they are being imported. `cake verify` starts in well under a second because of it.
STANDARD_LIBRARY_ONLY = ("cake_ir", "cake_verify")

# Modules of the command line that run before a command is chosen, or on the `cake verify` path.
VERIFY_PATH = ("cake_mcp/__init__.py", "cake_mcp/cli/__init__.py", "cake_mcp/cli/verify.py")


def _imports(tree: ast.AST, *, module_level_only: bool) -> Iterator[tuple[str, int]]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if module_level_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if module_level_only and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module, node.lineno
        pending.extend(ast.iter_child_nodes(node))


def _sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", LAYERS)
def test_a_package_imports_only_the_layers_below_it(package: str) -> None:
    above = LAYERS[LAYERS.index(package) + 1 :]
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in _sources(package)
        for name, line in _imports(ast.parse(path.read_text("utf-8")), module_level_only=False)
        if name.split(".")[0] in above
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", STANDARD_LIBRARY_ONLY)
def test_the_language_and_the_gates_import_only_the_standard_library(package: str) -> None:
    allowed = set(sys.stdlib_module_names) | set(LAYERS[: LAYERS.index(package) + 1])
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in _sources(package)
        for name, line in _imports(ast.parse(path.read_text("utf-8")), module_level_only=True)
        if name.split(".")[0] not in allowed
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", VERIFY_PATH)
def test_the_verify_command_imports_nothing_heavy(path: str) -> None:
    allowed = set(sys.stdlib_module_names) | {"cake_ir", "cake_verify", "cake_mcp"}
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    wrong = [f"{path}:{line} imports {name}" for name, line in _imports(tree, module_level_only=True) if name.split(".")[0] not in allowed]
    assert not wrong, "\n".join(wrong)


def test_the_layer_test_sees_a_forbidden_import() -> None:
    tree = ast.parse("def f():\n    import cake_mcp.store\n")
    assert list(_imports(tree, module_level_only=False)) == [("cake_mcp.store", 2)]
    assert list(_imports(tree, module_level_only=True)) == []
