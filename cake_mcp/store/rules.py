"""Proposed and approved knowledge, and the reviews that decided about it.

Nothing proposed takes effect before a person has approved it: `decide` is called by the review command alone.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .database import Database
from .encoding import from_json, to_json
from .identity import canonical_json, digest, named

PENDING, APPROVED, REJECTED = "pending", "approved", "rejected"


@dataclass(frozen=True, slots=True)
class Rule:
    """One proposal: a check, calibration, tactic or primitive, with the report of its trial. `code` (R###) is given on approval."""

    id: str
    kind: str
    state: str
    code: str | None
    title: str
    proposal: dict[str, Any]
    report: dict[str, Any]
    path: str | None
    created: float
    decided: float | None


class Rules:
    """The rules of a workspace."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def propose(self, kind: str, title: str, proposal: Mapping[str, Any], report: Mapping[str, Any]) -> tuple[Rule, bool]:
        """Store a proposal as pending; the rule, and whether it was new. The same proposal again refreshes the report while pending."""
        key = digest(kind, canonical_json(dict(proposal)))
        with self._db.write() as db:
            known = list(self._db.table("rules").rows_where("key = ?", [key], limit=1))
            if known:
                identifier = known[0]["id"]
                if known[0]["state"] == PENDING:
                    db.table("rules").update(identifier, {"report": to_json(report)})
            else:
                identifier = named("p", key, self._key_of)
                db.table("rules").insert(
                    {
                        "id": identifier, "key": key, "kind": kind, "state": PENDING, "code": None, "title": title,
                        "proposal": to_json(proposal), "report": to_json(report), "path": None, "created": time.time(), "decided": None,
                    }
                )  # fmt: skip
        rule = self.get(identifier)
        assert rule is not None
        return rule, not known

    def decide(
        self, identifier: str, decision: str, *, reviewer: str, reason: str, code: str | None = None, path: str | None = None
    ) -> Rule:
        """Approve or reject a pending rule and record who decided and why.

        Raises `ValueError` if there is no such rule or it has been decided already.
        """
        if decision not in (APPROVED, REJECTED):
            raise ValueError(f"a decision is {APPROVED} or {REJECTED}, not {decision}")
        now = time.time()
        with self._db.write() as db:
            rule = self.get(identifier)
            if rule is None:
                raise ValueError(f"no rule {identifier}")
            if rule.state != PENDING:
                raise ValueError(f"rule {identifier} has been {rule.state} already")
            db.table("rules").update(identifier, {"state": decision, "code": code, "path": path, "decided": now})
            db.table("reviews").insert({"rule": identifier, "decision": decision, "reviewer": reviewer, "reason": reason, "created": now})
        decided = self.get(identifier)
        assert decided is not None
        return decided

    def next_code(self) -> str:
        """The lowest code R### above every code given so far; codes are never reused."""
        rows = self._db.here().query("SELECT coalesce(max(CAST(substr(code, 2) AS INTEGER)), 0) AS top FROM rules WHERE code IS NOT NULL")
        return f"R{next(iter(rows))['top'] + 1:03d}"

    def get(self, identifier: str) -> Rule | None:
        """The rule of that id, or None."""
        rows = list(self._db.table("rules").rows_where("id = ?", [identifier], limit=1))
        return _rule(rows[0]) if rows else None

    def in_state(self, state: str) -> list[Rule]:
        """Rules in a state, oldest first."""
        return [_rule(row) for row in self._db.table("rules").rows_where("state = ?", [state], order_by="created, id")]

    def reviews(self, identifier: str) -> list[dict[str, Any]]:
        """The decisions about a rule, oldest first."""
        return list(self._db.table("reviews").rows_where("rule = ?", [identifier], order_by="id"))

    def _key_of(self, identifier: str) -> str | None:
        rows = list(self._db.table("rules").rows_where("id = ?", [identifier], select="key", limit=1))
        return rows[0]["key"] if rows else None


def _rule(row: Mapping[str, Any]) -> Rule:
    return Rule(
        row["id"], row["kind"], row["state"], row["code"], row["title"], from_json(row["proposal"], {}), from_json(row["report"], {}),
        row["path"], row["created"], row["decided"],
    )  # fmt: skip
