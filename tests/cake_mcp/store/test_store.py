"""What the store remembers, within one process."""

import math
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake_mcp.store import Store
from cake_mcp.store.encoding import from_json, to_json
from cake_mcp.store.identity import digest, named


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cake.db")


def add(store: Store, text: str = "text", **more: object):
    return store.candidates.add(text, {}, target="sm_90a", task="gemm", **more)  # type: ignore[arg-type]  # keyword pass-through


def test_the_same_proposal_twice_is_one_candidate(store: Store) -> None:
    first, new = add(store)
    again, new_again = add(store)
    assert (new, new_again) == (True, False)
    assert first == again
    assert len(store.candidates.descent(first.id)) == 1


@pytest.mark.parametrize(
    "other", [dict(text="other"), dict(params={"BM": 64}), dict(target="sm_80"), dict(task="rmsnorm"), dict(target=None)]
)
def test_text_parameters_target_and_task_make_a_candidate(store: Store, other: dict) -> None:
    base = dict(text="text", params={}, target="sm_90a", task="gemm")
    first, _ = store.candidates.add(**base)
    second, new = store.candidates.add(**{**base, **other})
    assert new and first.id != second.id


def test_lineage_keeps_parent_edits_and_rationale(store: Store) -> None:
    parent, _ = add(store)
    edits = [{"find": "a", "replace": "b"}]
    child, _ = add(store, text="child", parent=parent.id, edits=edits, rationale="fewer stages", proposer="agent")
    (descent,) = store.candidates.descent(child.id)
    assert (descent.parent, descent.edits, descent.rationale, descent.proposer) == (parent.id, edits, "fewer stages", "agent")
    assert store.candidates.children(parent.id) == [child.id]


@given(text=st.text())
@settings(max_examples=60, deadline=None)
def test_text_comes_back_byte_for_byte(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    store = Store(tmp_path_factory.mktemp("store") / "cake.db")
    candidate, _ = add(store, text=text)
    again = store.candidates.get(candidate.id)
    assert again is not None and again.text == text
    store.close()


def test_ids_that_begin_alike_grow_longer() -> None:
    key = digest("a")
    short = named("c", key, lambda _: None)
    longer = named("c", key, lambda identifier: "someone else" if identifier == short else None)
    assert longer.startswith(short) and len(longer) == len(short) + 1


def test_non_finite_numbers_become_text_that_a_strict_parser_reads() -> None:
    value = {"worst": math.inf, "mean": math.nan, "low": -math.inf, "n": 3}
    assert from_json(to_json(value)) == {"worst": "inf", "mean": "nan", "low": "-inf", "n": 3}


def test_the_newest_verdict_counts(store: Store) -> None:
    candidate, _ = add(store)
    store.verdicts.record(candidate.id, "q1", {"verdict": "fail", "diagnostics": [{"code": "S06", "severity": "error"}], "elapsed_ms": 3.5})
    assert store.verdicts.passed() == set()
    store.verdicts.record(candidate.id, "q2", {"verdict": "pass", "diagnostics": [], "elapsed_ms": 4})
    latest = store.verdicts.latest(candidate.id)
    assert latest is not None and latest.verdict == "pass"
    assert store.verdicts.passed() == {candidate.id}
    store.verdicts.record(candidate.id, "q1", {"verdict": "fail", "diagnostics": [], "elapsed_ms": 4})
    assert store.verdicts.passed() == set()


def test_a_repeated_failure_is_counted_not_doubled(store: Store) -> None:
    candidate, _ = add(store)
    first = store.failures.record(candidate.id, stage="safety", code="S006", message="no fence", line=7, environment={"cake": "0.1"})
    again = store.failures.record(candidate.id, stage="safety", code="S006", message="no fence", line=7)
    assert first == again
    (failure,) = store.failures.of(candidate.id)
    assert failure.seen == 2 and failure.environment == {"cake": "0.1"}


def test_a_decision_is_final_and_recorded(store: Store) -> None:
    rule, new = store.rules.propose("check", "fence before store", {"sql": "SELECT 1"}, {"accepted": True})
    assert new and rule.state == "pending" and store.rules.next_code() == "R001"
    decided = store.rules.decide(rule.id, "approved", reviewer="ada", reason="seen twice", code="R001")
    assert decided.state == "approved" and store.rules.next_code() == "R002"
    assert [(r["decision"], r["reviewer"], r["reason"]) for r in store.rules.reviews(rule.id)] == [("approved", "ada", "seen twice")]
    with pytest.raises(ValueError, match="already"):
        store.rules.decide(rule.id, "rejected", reviewer="bob", reason="no")


def test_a_row_cannot_point_at_a_candidate_that_is_not_there(store: Store) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        store.runs.record("c_nothing", {}, status="PASSED", evidence="measured")


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    with pytest.raises(RuntimeError), store.database.write():
        add(store)
        raise RuntimeError("stop")
    assert store.candidates.count() == 0


def test_opening_twice_migrates_once(tmp_path: Path) -> None:
    add(Store(tmp_path / "cake.db"))
    assert Store(tmp_path / "cake.db").candidates.count() == 1
