"""Tactics: pages that say when an edit of a schedule pays, with the evidence, and a schedule before and after.

A page is Markdown with front matter: `name`, `title`, `when`, `effect`, `evidence`, `findings` (ids of a diagnosis that call for it, or
none), `arguments` (scalars of its schedules), and `precondition`: one SELECT over the facts of a program, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cake_ir.program import Program
    from cake_verify.sandbox import Hit

KEYS = ("name", "title", "when", "effect", "evidence", "findings", "arguments", "precondition")
_BLOCK = re.compile(r"^## (Before|After)\n+```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class TacticError(ValueError):
    """A page that is not a tactic; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Tactic:
    """One tactic. `findings` are ids, `arguments` scalar values for its schedules, `precondition` a SELECT or empty."""

    name: str
    title: str
    when: str
    effect: str
    evidence: str
    findings: tuple[str, ...]
    arguments: dict[str, int]
    precondition: str
    text: str
    before: str
    after: str

    def hits(self, program: Program) -> list[Hit]:
        """The places of a program at which the tactic may apply; none where it has no precondition to ask.

        Raises `RuleError` for a precondition that does not run.
        """
        from cake_verify import facts, sandbox

        if not self.precondition:
            return []
        connection = facts.load(program)
        try:
            sandbox.protect(connection)
            return sandbox.query(connection, self.precondition)
        finally:
            connection.close()


def read_tactic(page: str) -> Tactic:
    """The tactic on a page. Raises `TacticError`."""
    head, _, body = page.removeprefix("---\n").partition("\n---\n")
    if not page.startswith("---\n") or not body:
        raise TacticError("no front matter between two lines of ---")
    fields = _front(head)
    missing = [key for key in KEYS if not fields.get(key)]
    if missing:
        raise TacticError(f"front matter lacks {', '.join(missing)}")
    blocks = {kind: code for kind, code in _BLOCK.findall(body)}
    if set(blocks) != {"Before", "After"}:
        raise TacticError("a page needs one python block under `## Before` and one under `## After`")
    ids = () if fields["findings"] == "none" else tuple(x.strip() for x in fields["findings"].split(","))
    try:
        arguments = {k: int(v) for k, v in (pair.split("=") for pair in fields["arguments"].split())}
    except ValueError:
        raise TacticError(f"`arguments` is `{fields['arguments']}`, expected NAME=number ..") from None
    precondition = "" if fields["precondition"] == "none" else fields["precondition"]
    return Tactic(
        fields["name"], fields["title"], fields["when"], fields["effect"], fields["evidence"], ids, arguments, precondition, body.strip(),
        blocks["Before"], blocks["After"],
    )  # fmt: skip


def _front(head: str) -> dict[str, str]:
    """`key: value` lines; after `key: |` the indented lines that follow."""
    fields: dict[str, str] = {}
    key = ""
    for line in head.split("\n"):
        if line.startswith("  ") and key:
            fields[key] = f"{fields[key]}\n{line[2:]}".strip()
            continue
        key, colon, value = line.partition(":")
        if not colon or key not in KEYS or key in fields:
            raise TacticError(f"`{line}` is no line of front matter; keys: {', '.join(KEYS)}")
        fields[key] = value.strip().removesuffix("|").strip() if value.strip() == "|" else value.strip()
    return fields


def load_tactics(folder: Path) -> tuple[Tactic, ...]:
    """Every tactic in a folder, by file name. Raises `TacticError`, naming the file."""
    out = []
    for path in sorted(folder.glob("*.md")):
        try:
            out.append(read_tactic(path.read_text(encoding="utf-8")))
        except TacticError as error:
            raise TacticError(f"{path.name}: {error}") from None
    return tuple(out)


def called_for(tactics: Iterable[Tactic], findings: Iterable[str]) -> tuple[Tactic, ...]:
    """The tactics that some finding of a diagnosis calls for."""
    ids = set(findings)
    return tuple(t for t in tactics if ids & set(t.findings))
