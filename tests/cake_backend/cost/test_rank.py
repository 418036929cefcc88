"""Ranking: cliffs are found, the plateau is a tie, ids decide nothing, and what is not covered is explored."""

from collections.abc import Callable

import pytest

from cake_backend.cost import Ranking, rank
from cake_ir.program import Program

BIG = {"M": 8192, "N": 8192, "K": 8192}
PLATEAU = ("base", "three stages", "cluster 1", "bn 128", "bn 128, cluster 1", "depth 0", "group 1")
CLIFFS = ("two stages", "cluster 1, two stages", "n 64")


@pytest.fixture(scope="module")
def ranking(variant: Callable[[str], Program]) -> Ranking:
    names = (*PLATEAU, *CLIFFS, "cluster order")
    return rank([(n, variant(n), None) for n in names], BIG)


def test_the_plateau_is_one_group(ranking: Ranking) -> None:
    assert set(PLATEAU) <= set(ranking.groups[0])


def test_the_cliffs_are_dropped_with_a_reason(ranking: Ranking) -> None:
    assert {d.id for d in ranking.dropped} == set(CLIFFS)
    assert all(d.against in ranking.groups[0] and d.least > 0.1 and "bound by" in d.reason for d in ranking.dropped)


def test_a_fence_in_the_hot_loop_sorts_behind_everything(ranking: Ranking) -> None:
    assert set(ranking.last) == {"cluster order"}
    assert ranking.order[-1] == "cluster order"


def test_nothing_on_the_plateau_is_claimed_to_beat_its_neighbours(ranking: Ranking) -> None:
    for name in PLATEAU:
        assert not set(ranking.decisive[name]) & set(PLATEAU)
        assert "two stages" in ranking.decisive[name]


def test_ids_and_order_decide_nothing(variant: Callable[[str], Program]) -> None:
    names = ("base", "three stages", "two stages", "group 1")
    renamed = {n: chr(ord("z") - k) for k, n in enumerate(names)}
    a = rank([(n, variant(n), None) for n in names], BIG)
    b = rank([(renamed[n], variant(n), None) for n in reversed(names)], BIG)
    assert [{renamed[i] for i in g} for g in a.groups] == [set(g) for g in b.groups]
    picks = {a.choose(1, seed)[0].id for seed in range(20)}
    assert picks == {"base", "three stages", "group 1"}


def test_a_budget_is_spent_on_no_cliff(ranking: Ranking) -> None:
    chosen = {p.id for p in ranking.choose(len(PLATEAU))}
    assert chosen == set(PLATEAU)


def test_withheld_candidates_get_a_share_of_the_runs(variant: Callable[[str], Program], example: Callable[..., Program]) -> None:
    args = {**BIG, "NB": 32, "NP": 65536, "NK": 1024}
    r = rank([("gemm", variant("base"), None), ("st3", variant("three stages"), None), ("other", example("kmeans_assign"), None)], args)
    assert r.withheld["other"][0] == "R02"
    chosen = r.choose(2)
    assert [p.id for p in chosen if p.id == "other"] == ["other"] and "exploration" in next(p.why for p in chosen if p.id == "other")


def test_one_program_twice_is_named_a_duplicate(variant: Callable[[str], Program]) -> None:
    r = rank([("a", variant("base"), None), ("b", variant("base"), None), ("c", variant("two stages"), None)], BIG)
    assert r.duplicates == {"b": "a"}


def test_variants_of_one_design_are_counted_once(ranking: Ranking, variant: Callable[[str], Program], example: Callable[..., Program]) -> None:
    r = rank([("a", variant("base"), None), ("b", variant("three stages"), None), ("c", example("gemm_sm80"), None)], BIG)
    assert sorted(sorted(d) for d in r.designs) == [["a", "b"], ["c"]]


def test_a_serialised_build_sorts_last(variant: Callable[[str], Program]) -> None:
    report = {"ok": True, "resources": {"registers": 168}, "serialised": True, "remarks": [{"code": "C7514", "serialises": True}]}
    r = rank([("good", variant("base"), {"ok": True, "resources": {"registers": 168}}), ("bad", variant("base"), report)], BIG)
    assert r.order == ("good", "bad") and set(r.last) == {"bad"} and r.decisive["good"] == ("bad",)


def test_two_candidates_of_one_id_are_refused(variant: Callable[[str], Program]) -> None:
    with pytest.raises(ValueError, match="same id"):
        rank([("a", variant("base"), None), ("a", variant("base"), None)], BIG)
