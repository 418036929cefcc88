"""Jobs: long work with a life of its own, visible to and controllable by every server of the workspace.

A job is a row. The process that does the work owns it and beats its heart; whoever finds a running job whose owner is gone may put it back
in the queue (adoption). States: queued -> running -> done | failed | cancelled, and lost for one that was adopted too often.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .database import Database
from .encoding import from_json, to_json
from .identity import fresh

QUEUED, RUNNING, DONE, FAILED, CANCELLED, LOST = "queued", "running", "done", "failed", "cancelled", "lost"
ALIVE = (QUEUED, RUNNING)
HEARTBEAT_SECONDS = 2.0
STALE_SECONDS = 20.0
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of long work and how far it is. `progress` runs from 0 to 1; times are seconds since 1970."""

    id: str
    key: str
    kind: str
    candidate: str
    request: dict[str, Any]
    state: str
    owner: str | None
    pid: int | None
    heartbeat: float | None
    attempts: int
    stage: str | None
    progress: float
    message: str | None
    run: str | None
    error: str | None
    cancel: bool
    created: float
    started: float | None
    finished: float | None

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self.state in ALIVE


class Jobs:
    """The jobs of a workspace."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def submit(self, key: str, kind: str, candidate: str, request: Mapping[str, Any], *, again: bool = False) -> tuple[Job, bool]:
        """Queue work unless the same work is queued, running or done; the job, and whether it was queued now.

        With `again` finished work is done anew; work in progress is never doubled.
        """
        reusable = ALIVE if again else (*ALIVE, DONE)
        with self._db.write() as db:
            marks = ", ".join("?" * len(reusable))
            known = list(
                self._db.table("jobs").rows_where(f"key = ? AND state IN ({marks})", [key, *reusable], order_by="created DESC", limit=1)
            )
            if known:
                return _job(known[0]), False
            identifier = fresh("j")
            db.table("jobs").insert(
                {
                    "id": identifier, "key": key, "kind": kind, "candidate": candidate, "request": to_json(request), "state": QUEUED,
                    "attempts": 0, "cancel": 0, "progress": 0.0, "created": time.time(),
                }
            )  # fmt: skip
        return self._known(identifier), True

    def claim(self, owner: str, at_most: int) -> Job | None:
        """Take the oldest queued job for `owner`, unless `at_most` jobs of the workspace run already."""
        with self._db.write() as db:
            if self._db.table("jobs").count_where("state = ?", [RUNNING]) >= at_most:
                return None
            rows = list(self._db.table("jobs").rows_where("state = ?", [QUEUED], order_by="created, id", limit=1, select="id"))
            if not rows:
                return None
            now = time.time()
            db.execute(
                "UPDATE jobs SET state = ?, owner = ?, pid = NULL, heartbeat = ?, started = ?, attempts = attempts + 1, progress = 0 WHERE id = ?",
                [RUNNING, owner, now, now, rows[0]["id"]],
            )
        return self._known(rows[0]["id"])

    def begin(self, identifier: str, owner: str, pid: int) -> bool:
        """The process doing the work takes the job over from the server that started it; False if it is no longer its to do."""
        with self._db.write() as db:
            changed = db.execute(
                "UPDATE jobs SET owner = ?, pid = ?, heartbeat = ? WHERE id = ? AND state = ? AND pid IS NULL AND cancel = 0",
                [owner, pid, time.time(), identifier, RUNNING],
            ).rowcount
        return changed == 1

    def beat(self, identifier: str, owner: str) -> bool:
        """Say that the owner lives; False if the job was cancelled or is someone else's now."""
        with self._db.write() as db:
            changed = db.execute(
                "UPDATE jobs SET heartbeat = ? WHERE id = ? AND owner = ? AND state = ? AND cancel = 0",
                [time.time(), identifier, owner, RUNNING],
            ).rowcount
        return changed == 1

    def report(self, identifier: str, owner: str, *, stage: str, progress: float, message: str) -> None:
        """Say how far the work is."""
        with self._db.write() as db:
            db.execute(
                "UPDATE jobs SET stage = ?, progress = max(progress, ?), message = ?, heartbeat = ? WHERE id = ? AND owner = ? AND state = ?",
                [stage, min(1.0, max(0.0, progress)), message, time.time(), identifier, owner, RUNNING],
            )

    def finish(self, identifier: str, owner: str, *, run: str | None = None, error: str | None = None) -> bool:
        """End the owner's job, with a run (done) or an error (failed); False if it was cancelled or adopted meanwhile."""
        state = DONE if error is None else FAILED
        with self._db.write() as db:
            changed = db.execute(
                "UPDATE jobs SET state = ?, run = ?, error = ?, finished = ?, progress = CASE WHEN ? THEN 1.0 ELSE progress END "
                "WHERE id = ? AND owner = ? AND state = ?",
                [state, run, error, time.time(), error is None, identifier, owner, RUNNING],
            ).rowcount
        return changed == 1

    def cancel(self, identifier: str) -> Job | None:
        """End a job that has not ended: it is cancelled at once, and its process is to be killed by who calls this."""
        with self._db.write() as db:
            db.execute(
                "UPDATE jobs SET state = ?, cancel = 1, finished = ? WHERE id = ? AND state IN (?, ?)",
                [CANCELLED, time.time(), identifier, *ALIVE],
            )
        return self.get(identifier)

    def adopt(self, gone: Callable[[str], bool | None]) -> list[Job]:
        """Put running jobs whose owner is gone back in the queue, or end them as lost after `MAX_ATTEMPTS`; the jobs changed.

        `gone(owner)` says whether that process has ended, or None where this machine cannot know; then a heart that has not beaten for
        `STALE_SECONDS` decides.
        """
        now = time.time()
        changed: list[str] = []
        with self._db.write() as db:
            for row in list(self._db.table("jobs").rows_where("state = ?", [RUNNING])):
                verdict = gone(row["owner"])
                if verdict is False or (verdict is None and row["heartbeat"] > now - STALE_SECONDS):
                    continue
                if row["attempts"] >= MAX_ATTEMPTS:
                    error = f"its process disappeared {row['attempts']} times"
                    db.execute("UPDATE jobs SET state = ?, finished = ?, error = ? WHERE id = ?", [LOST, now, error, row["id"]])
                else:
                    db.execute("UPDATE jobs SET state = ?, owner = NULL, pid = NULL WHERE id = ?", [QUEUED, row["id"]])
                changed.append(row["id"])
        return [self._known(identifier) for identifier in changed]

    def get(self, identifier: str) -> Job | None:
        """The job of that id, or None."""
        rows = list(self._db.table("jobs").rows_where("id = ?", [identifier], limit=1))
        return _job(rows[0]) if rows else None

    def ahead_of(self, job: Job) -> int:
        """How many jobs are to be served before a queued one: those running and those queued earlier."""
        return self._db.table("jobs").count_where(
            "state = ? OR (state = ? AND (created < ? OR (created = ? AND id < ?)))", [RUNNING, QUEUED, job.created, job.created, job.id]
        )

    def in_state(self, *states: str) -> list[Job]:
        """Jobs in any of the states, oldest first."""
        marks = ", ".join("?" * len(states))
        return [_job(row) for row in self._db.table("jobs").rows_where(f"state IN ({marks})", list(states), order_by="created, id")]

    def of(self, candidate: str) -> list[Job]:
        """The jobs of a candidate, newest first."""
        return [_job(row) for row in self._db.table("jobs").rows_where("candidate = ?", [candidate], order_by="created DESC")]

    def _known(self, identifier: str) -> Job:
        job = self.get(identifier)
        assert job is not None
        return job


def _job(row: Mapping[str, Any]) -> Job:
    return Job(
        row["id"], row["key"], row["kind"], row["candidate"], from_json(row["request"], {}), row["state"], row["owner"], row["pid"],
        row["heartbeat"], row["attempts"], row["stage"], row["progress"] or 0.0, row["message"], row["run"], row["error"],
        bool(row["cancel"]), row["created"], row["started"], row["finished"],
    )  # fmt: skip
