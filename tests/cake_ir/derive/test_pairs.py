"""Pairs of CTAs: who runs what, and where arrivals on the barriers that join them count."""

from pathlib import Path

import pytest

from cake_ir import parse, specialise
from cake_ir.derive.arrivals import arrivals
from cake_ir.derive.clusters import arrival_targets, arriving
from cake_ir.derive.pairs import joins, landing, paired_roles, runs
from cake_ir.program import Program

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"


def pair(*edits: tuple[str, str], file: str = "tcgen05_pair_gemm") -> Program:
    text = (CORPUS / f"{file}.py").read_text("utf-8")
    for old, new in edits:
        assert text.count(old) >= 1
        text = text.replace(old, new)
    program = specialise(parse(text, file).schedules[0]).program
    assert program is not None
    return program


def test_the_role_that_multiplies_runs_in_leaders_and_every_other_role_everywhere() -> None:
    program = pair(file="tcgen05_pair_scaled")
    assert paired_roles(program) == {"mma"}
    assert [[r for r in program.roles if runs(program, r, rank)] for rank in range(4)] == [["rows", "load", "mma"], ["rows", "load"]] * 2


def test_barriers_are_gathered_where_that_role_waits_and_spread_where_it_commits() -> None:
    program = pair()
    assert joins(program) == {"full": "gathered", "empty": "spread", "acc_full": "spread", "acc_empty": "gathered"}
    assert {n: a.count for n, a in arrivals(program).items()} == {"full": 2, "empty": 1, "acc_full": 1, "acc_empty": 8}
    assert [arrival_targets(program, "acc_empty", r) for r in (0, 1)] == [(0,), (0,)]
    assert arrival_targets(program, "empty", 0) == (0, 1)
    assert [landing(program, "full", r) for r in (0, 1)] == [0, 0]


def test_pairs_of_a_larger_cluster_keep_to_themselves() -> None:
    program = pair(file="tcgen05_pair_scaled")
    assert [landing(program, "full", r) for r in range(4)] == [0, 0, 2, 2]
    assert arrival_targets(program, "done", 2) == (2, 3)


@pytest.mark.parametrize(("name", "count"), [("full", 1), ("acc_empty", 4)])
def test_a_barrier_of_one_cta_joins_nobody(name: str, count: int) -> None:
    program = pair((', scope="cluster")', ")"))
    assert joins(program) == {} and arriving(program, name) == 1
    assert arrivals(program)[name].count == count and landing(program, name, 1) == 1


def test_without_products_of_pairs_a_cluster_scope_means_what_it_did() -> None:
    program = pair((", ctas=2", ""), ("BN // 2", "BN"))
    assert joins(program) == {} and paired_roles(program) == frozenset()
    assert arrival_targets(program, "acc_full", 0) == (0, 1)
