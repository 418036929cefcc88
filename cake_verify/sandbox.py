"""Runs one SELECT that somebody else wrote over an in-memory database of facts, and lets it do nothing else.

Allowed: reading the facts' tables, joins, aggregates, recursion, a short list of pure functions. Refused: everything that writes, attaches,
loads, sets or names anything outside. Bounded: length, depth, rows and time.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from cake_ir.record import record

COLUMNS = ("line", "column", "detail")
"""What a check's SELECT returns, in any order: where (1-based; the facts carry both) and a text for the message's `{detail}`."""

MAX_SQL = 8_192
MAX_ROWS = 50
DEADLINE_SECONDS = 0.25

FUNCTIONS = frozenset(
    "min max count sum total avg coalesce ifnull nullif iif abs length substr lower upper instr like glob group_concat round sign "
    "row_number rank dense_rank lag lead first_value last_value".split()
)

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE}
_HIDDEN = ("sqlite_",)


class RuleError(Exception):
    """The SELECT is refused, wrong, or too slow; the message says which."""


@record()
class Hit:
    """One row: a place in the text where the check says that something is wrong."""

    line: int
    column: int
    detail: str


def protect(connection: sqlite3.Connection) -> None:
    """Make a connection whose facts are complete safe to hand to `query`: from here on it can only be read."""
    connection.execute("PRAGMA trusted_schema = 0")
    connection.execute("PRAGMA query_only = 1")
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, MAX_SQL)
    connection.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 64)
    connection.setlimit(sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 8)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1 << 20)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_authorise)


def query(connection: sqlite3.Connection, sql: str, *, deadline_seconds: float = DEADLINE_SECONDS) -> list[Hit]:
    """The hits of a check on one program's facts, at most `MAX_ROWS`.

    Raises `RuleError` for anything but one SELECT with the columns `COLUMNS`, and when it takes longer than the deadline.
    """
    if len(sql) > MAX_SQL:
        raise RuleError(f"the query has {len(sql)} characters; at most {MAX_SQL} are taken")
    if not sql.lstrip().lower().startswith(("select", "with")):
        raise RuleError("a check is one SELECT (or WITH .. SELECT)")
    deadline = time.monotonic() + deadline_seconds
    connection.set_progress_handler(lambda: int(time.monotonic() > deadline), 1_000)
    try:
        cursor = connection.execute(sql)
        names = [column[0].lower() for column in cursor.description or ()]
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise RuleError(f"the query returns no column `{missing[0]}`; it must return {', '.join(COLUMNS)}")
        rows = cursor.fetchmany(MAX_ROWS)
    except sqlite3.ProgrammingError as error:  # several statements
        raise RuleError(f"a check is exactly one SELECT: {error}") from error
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise RuleError(f"the query took longer than {deadline_seconds * 1e3:.0f} ms") from error
        raise RuleError(_readable(error)) from error
    except sqlite3.DatabaseError as error:
        raise RuleError(_readable(error)) from error
    finally:
        connection.set_progress_handler(None, 0)
    return [_hit(names, row) for row in rows]


def _authorise(action: int, first: str | None, second: str | None, database: str | None, origin: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_OK if second is not None and second.lower() in FUNCTIONS else sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_READ and first is not None and first.lower().startswith(_HIDDEN):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _readable(error: sqlite3.DatabaseError) -> str:
    text = str(error)
    if "not authorized" in text or "prohibited" in text:
        return f"the query does what a check may not do ({text}); it may only SELECT from the facts, with the functions {', '.join(sorted(FUNCTIONS))}"
    return f"the query does not run: {text}"


def _hit(names: Sequence[str], row: Sequence[object]) -> Hit:
    values = dict(zip(names, row, strict=True))
    line, column = values["line"], values["column"]
    return Hit(
        line if isinstance(line, int) and line > 0 else 1,
        column if isinstance(column, int) and column > 0 else 1,
        "" if values["detail"] is None else str(values["detail"])[:200],
    )
