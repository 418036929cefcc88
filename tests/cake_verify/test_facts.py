"""The facts of the six examples: complete, located, and what a check needs."""

import re
import sqlite3
from pathlib import Path

import pytest

from cake_ir.frontend import parse, specialise
from cake_ir.program import Program
from cake_verify import facts
from cake_verify.distilled import Check, diagnostics, run
from cake_verify.sandbox import Hit, protect, query

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))
NO_FENCE = facts.SCHEMA_TEXT.split("```sql\n")[1].split("```")[0]


def program(path: Path, change: tuple[str, str] = ("", ""), **params: int) -> Program:
    text = path.read_text("utf-8")
    assert change[0] in text
    template = parse(text.replace(*change) if change[0] else text, path.name).schedule()
    assert template is not None
    made = specialise(template, dict(params)).program
    assert made is not None
    return made


def example(name: str) -> Path:
    return next(path for path in EXAMPLES if path.stem == name)


def rows(p: Program, sql: str) -> list[tuple]:
    connection = facts.load(p)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_operation_is_a_row_with_a_place_and_an_order(path: Path) -> None:
    p = program(path)
    lines = path.read_text("utf-8").count("\n") + 1
    found = rows(p, "SELECT id, role, seq, line FROM op ORDER BY id")
    assert sorted(row[0] for row in found) == [op.id for op in p.ops]
    for role in p.roles:
        assert [row[2] for row in found if row[1] == role] == list(range(sum(row[1] == role for row in found)))
    assert all(1 <= row[3] <= lines for row in found)
    for table in facts.TABLES:
        columns = [info[1] for info in rows(p, f"SELECT * FROM pragma_table_info('{table}')")]
        assert columns == [column.strip() for column in facts.TABLES[table][0].split(",")]
        if {"line", "column"} <= set(columns):
            assert not rows(p, f"SELECT 1 FROM {table} WHERE line IS NULL OR line < 1 OR column < 1")


def test_declarations_loops_and_effects_of_the_hopper_gemm() -> None:
    p = program(example("gemm_ws"))
    assert rows(p, "SELECT name, stages FROM ring ORDER BY name") == [("ab", 4), ("cring", 2)]
    assert rows(p, "SELECT role, part FROM barrier_role WHERE barrier = 'ab_empty' ORDER BY part") == [("load", "cons"), ("math", "prod")]
    assert rows(p, "SELECT kind, trips FROM loop WHERE role = 'math' ORDER BY id") == [("tiles", None), ("range", None), ("static", 4)]
    assert rows(p, "SELECT e.view FROM op o JOIN effect e ON e.op = o.id WHERE o.name = 'mma' AND e.space = 'smem' ORDER BY e.n") == [
        ("smem_a",),
        ("smem_b",),
    ]
    assert rows(p, "SELECT DISTINCT o.view FROM op o WHERE o.name IN ('store', 'tma_store')") == [("smem_c",)]  # through a local name
    assert rows(p, "SELECT count(*) FROM op WHERE guarded = 1") == [(1,)]
    assert rows(p, "SELECT value FROM tunable WHERE name = 'STAGES'") == [(4,)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_check_of_the_schema_accepts_the_examples(path: Path) -> None:
    connection = facts.load(program(path))
    protect(connection)
    assert query(connection, NO_FENCE) == []
    connection.close()


def test_the_example_check_of_the_schema_finds_the_missing_fence_where_it_is() -> None:
    path = example("gemm_ws")
    fence = "                lm.fence_proxy()                                # generic writes -> async-proxy read\n"
    p = program(path, (fence, ""))
    connection = facts.load(p)
    protect(connection)
    (hit,) = query(connection, NO_FENCE)
    connection.close()
    assert isinstance(hit, Hit) and hit.detail == "smem_c"
    assert "tma_store(C" in path.read_text("utf-8").replace(fence, "").splitlines()[hit.line - 1]


def test_a_check_speaks_for_its_targets_and_in_the_contract_s_form() -> None:
    check = Check(
        "t", "s", "SELECT line, column, name AS detail FROM ring", "ring `{detail}` <{detail}>", "h", "warning", ("sm_90a",), "R012"
    )
    elsewhere = Check("t", "s", check.sql, "m", targets=("sm_100a",))
    (finding,) = run([check, elsewhere], program(example("rmsnorm")))
    (found,) = diagnostics(finding)
    assert (found["code"], found["gate"], found["severity"]) == ("R012", "distilled", "warning")
    assert re.fullmatch(r"ring `(\w+)` <\1>", found["message"]) and found["span"]["line"] > 1


def test_the_facts_are_a_database_of_their_own() -> None:
    first, second = facts.load(program(example("rmsnorm"))), facts.load(program(example("gemm_ws")))
    assert first.execute("SELECT name FROM schedule").fetchone() != second.execute("SELECT name FROM schedule").fetchone()
    protect(first)
    with pytest.raises(sqlite3.DatabaseError):
        first.execute("CREATE TABLE t(x)")
    first.close()
    second.close()
