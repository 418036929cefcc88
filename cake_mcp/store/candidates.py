"""Candidates: a text with the values of its parameters, for a target and a task; and where each came from."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .database import Database
from .encoding import from_json, to_json
from .identity import canonical_json, digest, named, text_hash


@dataclass(frozen=True, slots=True)
class Candidate:
    """One proposed kernel.

    `params` holds only what the proposer set; the rest has the text's defaults. `content_hash` is the hash of the program the text stands
    for (equal for texts that differ in names of locals, comments and layout); None while the text does not specialise.
    """

    id: str
    text: str
    params: dict[str, Any]
    target: str | None
    task: str | None
    text_hash: str
    content_hash: str | None
    title: str | None
    created: float


@dataclass(frozen=True, slots=True)
class Descent:
    """One proposal of a candidate: from which parent, by which edits, why, by whom."""

    child: str
    parent: str | None
    edits: list[dict[str, Any]]
    rationale: str
    proposer: str
    created: float


class Candidates:
    """The candidates of a workspace."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(
        self,
        text: str,
        params: Mapping[str, Any],
        *,
        target: str | None,
        task: str | None,
        title: str | None = None,
        parent: str | None = None,
        edits: Sequence[Mapping[str, Any]] = (),
        rationale: str = "",
        proposer: str = "",
    ) -> tuple[Candidate, bool]:
        """Store a proposal; the candidate, and whether it was new.

        Equal text, parameters, target and task are one candidate: proposing it again adds its descent and gives the same id.
        """
        key = digest(text, canonical_json(dict(params)), target or "", task or "")
        now = time.time()
        with self._db.write() as db:
            existing = list(self._db.table("candidates").rows_where("key = ?", [key], limit=1))
            if not existing:
                identifier = named("c", key, self._key_of)
                db.table("candidates").insert(
                    {
                        "id": identifier, "key": key, "text": text, "params": canonical_json(dict(params)), "target": target, "task": task,
                        "text_hash": text_hash(text), "content_hash": None, "title": title, "created": now,
                    }
                )  # fmt: skip
            else:
                identifier = existing[0]["id"]
            descent = {"child": identifier, "parent": parent if parent != identifier else None, "edits": to_json(list(edits))}
            same = "child = ? AND parent IS ? AND edits = ? AND rationale = ?"
            if not db.table("lineage").count_where(same, [descent["child"], descent["parent"], descent["edits"], rationale]):
                db.table("lineage").insert({**descent, "rationale": rationale, "proposer": proposer, "created": now})
        found = self.get(identifier)
        assert found is not None
        return found, not existing

    def describe(self, identifier: str, *, content_hash: str | None, title: str | None) -> None:
        """Record what the gates learnt about the text: its program's hash and the names of its schedules."""
        with self._db.write() as db:
            db.table("candidates").update(identifier, {"content_hash": content_hash, "title": title})

    def get(self, identifier: str) -> Candidate | None:
        """The candidate of that id, or None."""
        rows = list(self._db.table("candidates").rows_where("id = ?", [identifier], limit=1))
        return _candidate(rows[0]) if rows else None

    def same_program(self, content_hash: str, other_than: str) -> list[str]:
        """Ids of other candidates whose texts stand for the same program, oldest first."""
        rows = self._db.table("candidates").rows_where(
            "content_hash = ? AND id <> ?", [content_hash, other_than], order_by="created", select="id"
        )
        return [row["id"] for row in rows]

    def descent(self, identifier: str) -> list[Descent]:
        """How the candidate was proposed, oldest proposal first."""
        rows = self._db.table("lineage").rows_where("child = ?", [identifier], order_by="id")
        return [
            Descent(r["child"], r["parent"], from_json(r["edits"], []), r["rationale"] or "", r["proposer"] or "", r["created"])
            for r in rows
        ]

    def children(self, identifier: str) -> list[str]:
        """Ids of candidates proposed from this one, oldest first."""
        rows = self._db.table("lineage").rows_where("parent = ?", [identifier], order_by="id", select="DISTINCT child")
        return [row["child"] for row in rows]

    def recent(self, limit: int = 50) -> list[Candidate]:
        """The newest candidates, newest first."""
        return [_candidate(row) for row in self._db.table("candidates").rows_where(order_by="created DESC", limit=limit)]

    def all(self) -> list[Candidate]:
        """Every candidate, oldest first."""
        return [_candidate(row) for row in self._db.table("candidates").rows_where(order_by="created")]

    def count(self) -> int:
        """How many there are."""
        return self._db.table("candidates").count

    def _key_of(self, identifier: str) -> str | None:
        rows = list(self._db.table("candidates").rows_where("id = ?", [identifier], select="key", limit=1))
        return rows[0]["key"] if rows else None


def _candidate(row: Mapping[str, Any]) -> Candidate:
    return Candidate(
        row["id"], row["text"], from_json(row["params"], {}), row["target"], row["task"], row["text_hash"], row["content_hash"],
        row["title"], row["created"],
    )  # fmt: skip
