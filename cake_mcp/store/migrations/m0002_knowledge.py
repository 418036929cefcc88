"""What a workspace has learnt: rules, reviews, tactics, calibrations."""

from typing import cast

from sqlite_utils import Database
from sqlite_utils.db import Table


def apply(db: Database) -> None:
    """Create the tables."""

    def table(name: str) -> Table:
        return cast(Table, db[name])

    table("rules").create(
        {
            "id": str, "key": str, "kind": str, "state": str, "code": str, "title": str, "proposal": str, "report": str,
            "path": str, "created": float, "decided": float,
        },
        pk="id",
        not_null={"key", "kind", "state", "title", "proposal", "report", "created"},
    )  # fmt: skip
    table("rules").create_index(["key"], unique=True)
    db.execute("CREATE UNIQUE INDEX rules_code ON rules(code) WHERE code IS NOT NULL")

    table("reviews").create(
        {"id": int, "rule": str, "decision": str, "reviewer": str, "reason": str, "created": float},
        pk="id",
        not_null={"rule", "decision", "reviewer", "created"},
        foreign_keys=[("rule", "rules", "id")],
    )

    for name in ("tactics", "calibrations"):
        table(name).create(
            {"name": str, "path": str, "digest": str, "body": str, "created": float},
            pk="name",
            not_null={"path", "digest", "body", "created"},
        )
