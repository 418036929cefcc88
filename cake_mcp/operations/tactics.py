"""The tactics: pages that ship with Cake, and those of the workspace, which win."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..store import Page
from ..store.identity import digest
from ..workspace import Workspace

if TYPE_CHECKING:
    from cake_backend.tactic import Tactic
    from cake_ir.program import Program


def folder() -> Path:
    """Where the tactics that ship with Cake are: in the package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    return package / "tactics" if (package / "tactics").is_dir() else package.parent / "tactics"


def known(workspace: Workspace) -> "dict[str, Tactic]":
    """Every tactic by name, indexed in the store. Pages of the workspace that are not well formed are left out."""
    from cake_backend.tactic import TacticError, read_tactic

    found: dict[str, Tactic] = {}
    pages: dict[str, Page] = {}
    for path in [*sorted(folder().glob("*.md")), *sorted((workspace.root / "tactics").glob("*.md"))]:
        try:
            text = path.read_text("utf-8")
            tactic = read_tactic(text)
        except (TacticError, UnicodeDecodeError):
            continue
        found[tactic.name] = tactic
        pages[tactic.name] = Page(tactic.name, str(path), digest(text), {"title": tactic.title, "findings": list(tactic.findings)})
    if [(page.name, page.digest) for page in workspace.store.tactics.all()] != sorted((p.name, p.digest) for p in pages.values()):
        workspace.store.tactics.index(list(pages.values()))
    return found


def advice(workspace: Workspace, findings: list[str], program: "Program | None") -> list[dict[str, Any]]:
    """The tactics that findings call for, and those whose precondition the program meets, with the places."""
    from cake_backend.tactic import called_for
    from cake_verify.sandbox import RuleError

    tactics = known(workspace)
    called = {tactic.name for tactic in called_for(tactics.values(), findings)}
    out = []
    for tactic in tactics.values():
        try:
            hits = tactic.hits(program) if program is not None else []
        except RuleError:
            hits = []
        if tactic.name in called or hits:
            out.append(
                {
                    "name": tactic.name, "title": tactic.title, "effect": tactic.effect, "lines": [hit.line for hit in hits[:8]],
                    "called_for": tactic.name in called, "resource": f"cake://tactics/{tactic.name}",
                }
            )  # fmt: skip
    return sorted(out, key=lambda tactic: (not tactic["called_for"], tactic["name"]))
