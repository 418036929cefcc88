"""Predictions: what the cost model expected of a candidate on a device, kept to be compared with what was measured."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .database import Database
from .encoding import from_json, to_json


@dataclass(frozen=True, slots=True)
class StoredPrediction:
    """One prediction of the cost model."""

    candidate: str
    device: str | None
    body: dict[str, Any]
    created: float


class Predictions:
    """The predictions of a workspace."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(self, candidate: str, device: str | None, body: Mapping[str, Any]) -> None:
        """Store one prediction."""
        with self._db.write() as db:
            db.table("predictions").insert({"candidate": candidate, "device": device, "body": to_json(body), "created": time.time()})

    def of(self, candidate: str, limit: int = 10) -> list[StoredPrediction]:
        """The newest predictions of a candidate, newest first."""
        rows = self._db.table("predictions").rows_where("candidate = ?", [candidate], order_by="id DESC", limit=limit)
        return [StoredPrediction(r["candidate"], r["device"], from_json(r["body"], {}), r["created"]) for r in rows]
