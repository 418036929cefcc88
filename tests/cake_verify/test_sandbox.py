"""What a check's SELECT may and may not do."""

import sqlite3
import time
from collections.abc import Iterator

import pytest

from cake_verify.sandbox import DEADLINE_SECONDS, MAX_ROWS, Hit, RuleError, protect, query


@pytest.fixture
def facts() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE op(id INTEGER, line INTEGER, column INTEGER, name TEXT)")
    connection.executemany("INSERT INTO op VALUES (?, ?, ?, ?)", [(i, i + 10, 5, "mma" if i % 2 else "wait") for i in range(200)])
    protect(connection)
    yield connection
    connection.close()


def test_a_select_gives_its_rows_as_places(facts: sqlite3.Connection) -> None:
    assert query(facts, "SELECT line, column, name AS detail FROM op WHERE id = 3") == [Hit(13, 5, "mma")]


def test_joins_aggregates_windows_and_recursion_are_allowed(facts: sqlite3.Connection) -> None:
    sql = """WITH RECURSIVE chain(id) AS (SELECT 0 UNION SELECT id + 1 FROM chain WHERE id < 5)
             SELECT max(o.line) AS line, 1 AS column, group_concat(o.name, '+') AS detail FROM chain c JOIN op o ON o.id = c.id"""
    assert query(facts, sql) == [Hit(15, 1, "wait+mma+wait+mma+wait+mma")]


def test_at_most_fifty_rows_come_back(facts: sqlite3.Connection) -> None:
    assert len(query(facts, "SELECT line, column, '' AS detail FROM op")) == MAX_ROWS


def test_odd_places_become_the_start_of_the_text(facts: sqlite3.Connection) -> None:
    assert query(facts, "SELECT NULL AS line, 'x' AS column, NULL AS detail") == [Hit(1, 1, "")]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE op",
        "INSERT INTO op VALUES (1, 1, 1, 'x')",
        "UPDATE op SET line = 0",
        "DELETE FROM op",
        "ATTACH 'other.db' AS other",
        "PRAGMA table_info(op)",
        "VACUUM INTO 'copy.db'",
        "CREATE TABLE t(x)",
        "SELECT 1 AS line, 1 AS column, load_extension('x') AS detail",
        "SELECT 1 AS line, 1 AS column, randomblob(9) AS detail",
        "SELECT 1 AS line, 1 AS column, zeroblob(900000000) AS detail",
        "SELECT 1 AS line, 1 AS column, printf('%900000000d', 1) AS detail",
        "SELECT 1 AS line, 1 AS column, replace('a', 'a', 'b') AS detail",
        "SELECT 1 AS line, 1 AS column, sql AS detail FROM sqlite_master",
        "SELECT 1 AS line, 1 AS column, name AS detail FROM pragma_database_list",
        "SELECT 1 AS line, 1 AS column, '' AS detail; DROP TABLE op",
        "WITH x AS (SELECT 1) INSERT INTO op SELECT 1, 1, 1, 'x'",
        "SELECT line FROM op",
        "SELECT nothing AS line, 1 AS column, '' AS detail FROM op",
        "EXPLAIN SELECT 1",
        "",
        "SELECT " + "(" * 200 + "1" + ")" * 200 + " AS line, 1 AS column, '' AS detail",
        "SELECT 1 AS line, 1 AS column, '" + "x" * 10_000 + "' AS detail",
    ],
)
def test_anything_else_is_refused_at_once_and_changes_nothing(facts: sqlite3.Connection, sql: str) -> None:
    start = time.monotonic()
    with pytest.raises(RuleError):
        query(facts, sql)
    assert time.monotonic() - start < 0.2
    assert query(facts, "SELECT count(*) AS line, 1 AS column, '' AS detail FROM op") == [Hit(200, 1, "")]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) AS line, 1 AS column, '' AS detail FROM c",
        "SELECT count(*) AS line, 1 AS column, '' AS detail FROM op a, op b, op c, op d, op e",
        "SELECT group_concat(a.name || b.name) AS detail, 1 AS line, 1 AS column FROM op a, op b, op c",
    ],
)
def test_work_without_end_is_cut_off(facts: sqlite3.Connection, sql: str) -> None:
    start = time.monotonic()
    with pytest.raises(RuleError, match=r"took longer than|too big"):
        query(facts, sql)
    assert time.monotonic() - start < DEADLINE_SECONDS + 0.5
    assert query(facts, "SELECT 1 AS line, 1 AS column, '' AS detail") == [Hit(1, 1, "")]
