"""What a search produces: tasks, candidates, verdicts, predictions, jobs, runs, failures."""

from typing import cast

from sqlite_utils import Database
from sqlite_utils.db import Table


def apply(db: Database) -> None:
    """Create the tables."""

    def table(name: str) -> Table:
        return cast(Table, db[name])

    table("tasks").create({"name": str, "source": str, "digest": str, "body": str, "created": float}, pk="name")

    table("candidates").create(
        {
            "id": str, "key": str, "text": str, "params": str, "target": str, "task": str,
            "text_hash": str, "content_hash": str, "title": str, "created": float,
        },
        pk="id",
        not_null={"key", "text", "params", "text_hash", "created"},
    )  # fmt: skip
    table("candidates").create_index(["key"], unique=True)
    table("candidates").create_index(["content_hash"])

    table("lineage").create(
        {"id": int, "child": str, "parent": str, "edits": str, "rationale": str, "proposer": str, "created": float},
        pk="id",
        not_null={"child", "created"},
        foreign_keys=[("child", "candidates", "id"), ("parent", "candidates", "id")],
    )
    table("lineage").create_index(["child"])
    table("lineage").create_index(["parent"])

    table("verdicts").create(
        {"id": int, "candidate": str, "question": str, "verdict": str, "codes": str, "body": str, "elapsed_ms": float, "created": float},
        pk="id",
        not_null={"candidate", "question", "verdict", "body", "created"},
        foreign_keys=[("candidate", "candidates", "id")],
    )
    table("verdicts").create_index(["candidate", "question"], unique=True)

    table("predictions").create(
        {"id": int, "candidate": str, "device": str, "body": str, "created": float},
        pk="id",
        not_null={"candidate", "body", "created"},
        foreign_keys=[("candidate", "candidates", "id")],
    )
    table("predictions").create_index(["candidate"])

    table("jobs").create(
        {
            "id": str, "key": str, "kind": str, "candidate": str, "request": str, "state": str, "owner": str, "pid": int,
            "heartbeat": float, "attempts": int, "stage": str, "progress": float, "message": str, "run": str, "error": str,
            "cancel": int, "created": float, "started": float, "finished": float,
        },
        pk="id",
        not_null={"key", "kind", "candidate", "request", "state", "created"},
        defaults={"attempts": 0, "cancel": 0, "progress": 0.0},
        foreign_keys=[("candidate", "candidates", "id")],
    )  # fmt: skip
    table("jobs").create_index(["state", "created"])
    # The same work is never queued twice, whoever asks, from whichever process.
    db.execute("CREATE UNIQUE INDEX jobs_alive ON jobs(key) WHERE state IN ('queued', 'running')")

    table("runs").create(
        {
            "id": str, "candidate": str, "job": str, "task": str, "device": str, "target": str, "status": str, "evidence": str,
            "body": str, "folder": str, "created": float,
        },
        pk="id",
        not_null={"candidate", "status", "body", "created"},
        foreign_keys=[("candidate", "candidates", "id"), ("job", "jobs", "id")],
    )  # fmt: skip
    table("runs").create_index(["candidate"])

    table("failures").create(
        {
            "id": str, "key": str, "candidate": str, "run": str, "stage": str, "code": str, "message": str, "line": int,
            "environment": str, "body": str, "seen": int, "created": float,
        },
        pk="id",
        not_null={"key", "candidate", "stage", "code", "message", "created"},
        defaults={"seen": 1},
        foreign_keys=[("candidate", "candidates", "id"), ("run", "runs", "id")],
    )  # fmt: skip
    table("failures").create_index(["key"], unique=True)
    table("failures").create_index(["candidate"])
