"""Tactics, calibrations and tasks: indexes of files that people review and version like code."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .database import Database
from .encoding import from_json, to_json


@dataclass(frozen=True, slots=True)
class Page:
    """One indexed file: its name, where it is, the digest of its contents, and what was read from it."""

    name: str
    path: str
    digest: str
    body: dict[str, Any]


class Pages:
    """One index: the table `tactics` or `calibrations`."""

    def __init__(self, database: Database, table: str) -> None:
        self._db = database
        self._table = table

    def index(self, pages: list[Page]) -> None:
        """Make the index hold exactly these pages."""
        with self._db.write() as db:
            db.execute(f"DELETE FROM {self._table}")
            for page in pages:
                row = {"name": page.name, "path": page.path, "digest": page.digest, "body": to_json(page.body), "created": time.time()}
                db.table(self._table).insert(row)

    def all(self) -> list[Page]:
        """Every page, by name."""
        return [
            Page(r["name"], r["path"], r["digest"], from_json(r["body"], {}))
            for r in self._db.table(self._table).rows_where(order_by="name")
        ]


class Tasks:
    """The tasks that candidates of this workspace were judged on, as they were then."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(self, name: str, *, source: str, digest: str, body: Mapping[str, Any]) -> None:
        """Store or replace a task's description. `source` is "corpus" or the path of the workspace file."""
        row = {"name": name, "source": source, "digest": digest, "body": to_json(body), "created": time.time()}
        with self._db.write() as db:
            db.execute("DELETE FROM tasks WHERE name = ?", [name])
            db.table("tasks").insert(row)

    def get(self, name: str) -> dict[str, Any] | None:
        """The task's row with its body decoded, or None."""
        rows = list(self._db.table("tasks").rows_where("name = ?", [name], limit=1))
        return {**rows[0], "body": from_json(rows[0]["body"], {})} if rows else None
