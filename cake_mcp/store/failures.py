"""Failures: each distinct way in which a candidate failed, with the environment it failed in; what rules are distilled from."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .database import Database
from .encoding import from_json, to_json
from .identity import digest, named


@dataclass(frozen=True, slots=True)
class Failure:
    """One distinct failure. `stage` is a gate or a stage of the judge; `code` a diagnostic code or a run status; `seen` counts repeats."""

    id: str
    candidate: str
    run: str | None
    stage: str
    code: str
    message: str
    line: int | None
    environment: dict[str, Any]
    body: dict[str, Any]
    seen: int
    created: float


class Failures:
    """The failures of a workspace."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(
        self,
        candidate: str,
        *,
        stage: str,
        code: str,
        message: str,
        line: int | None = None,
        run: str | None = None,
        environment: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> str:
        """Store a failure, or count it once more if it is known; its id."""
        key = digest(candidate, stage, code, str(line), message)
        with self._db.write() as db:
            known = list(self._db.table("failures").rows_where("key = ?", [key], select="id", limit=1))
            if known:
                db.execute("UPDATE failures SET seen = seen + 1, run = coalesce(?, run) WHERE key = ?", [run, key])
                return known[0]["id"]
            identifier = named("f", key, self._key_of)
            db.table("failures").insert(
                {
                    "id": identifier, "key": key, "candidate": candidate, "run": run, "stage": stage, "code": code, "message": message,
                    "line": line, "environment": to_json(environment or {}), "body": to_json(body or {}), "seen": 1,
                    "created": time.time(),
                }
            )  # fmt: skip
        return identifier

    def get(self, identifier: str) -> Failure | None:
        """The failure of that id, or None."""
        rows = list(self._db.table("failures").rows_where("id = ?", [identifier], limit=1))
        return _failure(rows[0]) if rows else None

    def of(self, candidate: str) -> list[Failure]:
        """The failures of a candidate, oldest first."""
        return [_failure(row) for row in self._db.table("failures").rows_where("candidate = ?", [candidate], order_by="created, id")]

    def _key_of(self, identifier: str) -> str | None:
        rows = list(self._db.table("failures").rows_where("id = ?", [identifier], select="key", limit=1))
        return rows[0]["key"] if rows else None


def _failure(row: Mapping[str, Any]) -> Failure:
    return Failure(
        row["id"], row["candidate"], row["run"], row["stage"], row["code"], row["message"], row["line"],
        from_json(row["environment"], {}), from_json(row["body"], {}), row["seen"], row["created"],
    )  # fmt: skip
