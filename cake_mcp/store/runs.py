"""Runs: the evidence of one evaluation of a candidate, measured, simulated or predicted, each labelled as such."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .database import Database
from .encoding import from_json, to_json
from .identity import fresh


@dataclass(frozen=True, slots=True)
class Run:
    """One run record. `evidence` is the strongest label in it: measured, simulated or predicted. `folder` holds its artefacts."""

    id: str
    candidate: str
    job: str | None
    task: str | None
    device: str | None
    target: str | None
    status: str
    evidence: str
    body: dict[str, Any]
    folder: str | None
    created: float


class Runs:
    """The runs of a workspace."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(
        self,
        candidate: str,
        body: Mapping[str, Any],
        *,
        status: str,
        evidence: str,
        identifier: str | None = None,
        job: str | None = None,
        task: str | None = None,
        device: str | None = None,
        target: str | None = None,
        folder: str | None = None,
    ) -> str:
        """Store one run; its id."""
        identifier = identifier or fresh("r")
        row = {
            "id": identifier, "candidate": candidate, "job": job, "task": task, "device": device, "target": target, "status": status,
            "evidence": evidence, "body": to_json(body), "folder": folder, "created": time.time(),
        }  # fmt: skip
        with self._db.write() as db:
            db.table("runs").insert(row)
        return identifier

    def get(self, identifier: str) -> Run | None:
        """The run of that id, or None."""
        rows = list(self._db.table("runs").rows_where("id = ?", [identifier], limit=1))
        return _run(rows[0]) if rows else None

    def of(self, candidate: str, limit: int = 20) -> list[Run]:
        """The newest runs of a candidate, newest first."""
        rows = self._db.table("runs").rows_where("candidate = ?", [candidate], order_by="created DESC", limit=limit)
        return [_run(row) for row in rows]

    def passed(self) -> set[str]:
        """Ids of candidates that some run found correct."""
        rows = self._db.table("runs").rows_where("status LIKE 'PASSED%'", select="DISTINCT candidate")
        return {row["candidate"] for row in rows}

    def wall_seconds(self, limit: int = 20) -> list[float]:
        """How long the newest evaluations took, for estimating the next."""
        rows = self._db.table("jobs").rows_where(
            "state = 'done' AND started IS NOT NULL", order_by="finished DESC", limit=limit, select="finished - started AS wall"
        )
        return [row["wall"] for row in rows]


def _run(row: Mapping[str, Any]) -> Run:
    return Run(
        row["id"], row["candidate"], row["job"], row["task"], row["device"], row["target"], row["status"], row["evidence"],
        from_json(row["body"], {}), row["folder"], row["created"],
    )  # fmt: skip
