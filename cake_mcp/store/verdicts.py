"""Verdicts: what the gates said about a candidate, and to which question."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .database import Database
from .encoding import from_json, to_json


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """One answer of the gates. `question` names what was asked: version of the gates, target, extents, rules in force."""

    candidate: str
    question: str
    verdict: str
    codes: list[str]
    body: dict[str, Any]
    elapsed_ms: float
    created: float


class Verdicts:
    """The verdicts of a workspace."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(self, candidate: str, question: str, body: Mapping[str, Any]) -> None:
        """Store the verdict contract's object; the same question again replaces the answer."""
        codes = list(dict.fromkeys(d["code"] for d in body.get("diagnostics", ()) if d.get("severity") == "error"))
        row = {
            "candidate": candidate, "question": question, "verdict": body["verdict"], "codes": to_json(codes), "body": to_json(body),
            "elapsed_ms": float(body.get("elapsed_ms", 0.0)), "created": time.time(),
        }  # fmt: skip
        with self._db.write() as db:
            db.execute("DELETE FROM verdicts WHERE candidate = ? AND question = ?", [candidate, question])
            db.table("verdicts").insert(row)

    def latest(self, candidate: str) -> StoredVerdict | None:
        """The newest verdict of a candidate, or None."""
        rows = list(self._db.table("verdicts").rows_where("candidate = ?", [candidate], order_by="id DESC", limit=1))
        return _verdict(rows[0]) if rows else None

    def passed(self) -> set[str]:
        """Ids of candidates whose newest verdict is a pass."""
        rows = self._db.here().query(
            "SELECT candidate, verdict FROM verdicts WHERE id IN (SELECT max(id) FROM verdicts GROUP BY candidate)"
        )
        return {row["candidate"] for row in rows if row["verdict"] == "pass"}


def _verdict(row: Mapping[str, Any]) -> StoredVerdict:
    return StoredVerdict(
        row["candidate"], row["question"], row["verdict"], from_json(row["codes"], []), from_json(row["body"], {}), row["elapsed_ms"],
        row["created"],
    )  # fmt: skip
