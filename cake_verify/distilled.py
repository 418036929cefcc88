"""The sixth gate: checks that a workspace has distilled from its failures and a person has approved.

A check is data: one SELECT over the facts of a program, and the words for what it finds. It can only reject or warn.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from typing import Any

from cake_ir.program import Program
from cake_ir.record import record
from cake_verify import facts, sandbox

GATE = "distilled"
SEVERITIES = ("error", "warning")
_CODE = re.compile(r"R[0-9]{3}\Z")
_TEXTS = {"title": 120, "statement": 2_000, "message": 300, "help": 600}


@record()
class Check:
    """One check. `message` may contain `{detail}`; `targets` empty means every target; `code` is given on approval (R###)."""

    title: str
    statement: str
    sql: str
    message: str
    help: str = ""
    severity: str = "error"
    targets: tuple[str, ...] = ()
    code: str = ""

    def to_json(self) -> dict[str, Any]:
        """The check as its file holds it."""
        return {
            "kind": "check", "schema": facts.SCHEMA_VERSION, "code": self.code, "title": self.title, "statement": self.statement,
            "severity": self.severity, "targets": list(self.targets), "sql": self.sql, "message": self.message, "help": self.help,
        }  # fmt: skip


class CheckError(ValueError):
    """A check that is not well formed; the message says what is wrong with it."""


def from_json(data: dict[str, Any]) -> Check:
    """The check that a file or a proposal describes. Raises `CheckError`."""
    if data.get("kind", "check") != "check":
        raise CheckError(f"kind is `{data.get('kind')}`, expected `check`")
    if data.get("schema", facts.SCHEMA_VERSION) != facts.SCHEMA_VERSION:
        raise CheckError(f"written for version {data['schema']} of the facts, this is version {facts.SCHEMA_VERSION}")
    for name, limit in _TEXTS.items():
        value = data.get(name, "")
        if not isinstance(value, str) or len(value) > limit:
            raise CheckError(f"`{name}` must be text of at most {limit} characters")
        if name in ("title", "message") and (not value.strip() or "\n" in value):
            raise CheckError(f"`{name}` must be one line of text")
    if not isinstance(data.get("sql"), str) or not data["sql"].strip():
        raise CheckError("`sql` must be one SELECT over the facts")
    severity = data.get("severity", "error")
    if severity not in SEVERITIES:
        raise CheckError(f"`severity` is `{severity}`; a check can only reject (error) or warn (warning)")
    code = data.get("code", "")
    if code and not _CODE.match(code):
        raise CheckError(f"`code` is `{code}`, expected R and three digits")
    targets = data.get("targets", [])
    if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
        raise CheckError("`targets` must be a list of architectures")
    return Check(
        data["title"], data.get("statement", ""), data["sql"], data["message"], data.get("help", ""), severity, tuple(targets), code
    )


def parse(text: str) -> Check:
    """The check in the text of a rule file. Raises `CheckError`."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise CheckError(f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CheckError("expected an object")
    return from_json(data)


@record()
class Finding:
    """What one check found in one program, and how long it took."""

    check: Check
    schedule: str
    hits: tuple[sandbox.Hit, ...]
    elapsed_ms: float


def run(checks: Iterable[Check], program: Program) -> list[Finding]:
    """What each check finds in a program; checks for other targets are left out.

    Raises `sandbox.RuleError` for a check that does not run.
    """
    connection = facts.load(program)
    try:
        sandbox.protect(connection)
        found = []
        for check in checks:
            if check.targets and program.target not in check.targets:
                continue
            started = time.perf_counter()
            hits = sandbox.query(connection, check.sql)
            found.append(Finding(check, program.name, tuple(hits), (time.perf_counter() - started) * 1e3))
        return found
    finally:
        connection.close()


def diagnostics(finding: Finding) -> list[dict[str, Any]]:
    """A finding as objects of the verdict contract."""
    check = finding.check
    return [
        {
            "code": check.code or "R000",
            "gate": GATE,
            "severity": check.severity,
            "message": check.message.replace("{detail}", hit.detail),
            "span": {"line": hit.line, "column": hit.column, "end_line": hit.line, "end_column": hit.column + 1},
            "related": [],
            "trace": [],
            "help": check.help,
            "fixes": [],
            "schedule": finding.schedule,
            "facts": {"detail": hit.detail, "rule": check.title},
        }
        for hit in finding.hits
    ]
