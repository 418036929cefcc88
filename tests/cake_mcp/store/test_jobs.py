"""The life of a job row: queued once, claimed once, adopted when its owner is gone."""

from pathlib import Path

import pytest

from cake_mcp.jobs import processes
from cake_mcp.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cake.db")


@pytest.fixture
def candidate(store: Store) -> str:
    return store.candidates.add("text", {}, target=None, task=None)[0].id


ME = processes.identity()


def test_the_same_work_is_queued_once(store: Store, candidate: str) -> None:
    first, new = store.jobs.submit("key", "evaluate", candidate, {"a": 1})
    again, new_again = store.jobs.submit("key", "evaluate", candidate, {"a": 1}, again=True)
    assert (new, new_again) == (True, False) and first == again


def test_finished_work_is_reused_unless_asked_for_again(store: Store, candidate: str) -> None:
    job, _ = store.jobs.submit("key", "evaluate", candidate, {})
    store.jobs.claim(ME, 1)
    run = store.runs.record(candidate, {}, status="PASSED", evidence="simulated")
    assert store.jobs.finish(job.id, ME, run=run)
    assert store.jobs.submit("key", "evaluate", candidate, {})[0].run == run
    another, new = store.jobs.submit("key", "evaluate", candidate, {}, again=True)
    assert new and another.id != job.id


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_work_that_did_not_succeed_may_be_queued_again(store: Store, candidate: str, ending: str) -> None:
    job, _ = store.jobs.submit("key", "evaluate", candidate, {})
    store.jobs.claim(ME, 1)
    _ = store.jobs.finish(job.id, ME, error="out of memory") if ending == "failed" else store.jobs.cancel(job.id)
    ended = store.jobs.get(job.id)
    assert ended is not None and ended.state == ending
    assert store.jobs.submit("key", "evaluate", candidate, {})[1]


def test_a_job_is_claimed_by_one_and_in_order(store: Store, candidate: str) -> None:
    first, _ = store.jobs.submit("one", "evaluate", candidate, {})
    second, _ = store.jobs.submit("two", "evaluate", candidate, {})
    assert store.jobs.ahead_of(second) == 1
    claimed = store.jobs.claim(ME, 2)
    assert claimed is not None and (claimed.id, claimed.attempts) == (first.id, 1)
    assert store.jobs.claim(ME, 1) is None  # one runs already
    claimed = store.jobs.claim(ME, 2)
    assert claimed is not None and claimed.id == second.id
    assert store.jobs.claim(ME, 9) is None


def test_a_cancelled_job_cannot_be_finished_or_continued(store: Store, candidate: str) -> None:
    job, _ = store.jobs.submit("key", "evaluate", candidate, {})
    store.jobs.claim(ME, 1)
    store.jobs.cancel(job.id)
    assert not store.jobs.begin(job.id, ME, 1)
    assert not store.jobs.beat(job.id, ME)
    assert not store.jobs.finish(job.id, ME)


def test_a_job_whose_owner_is_gone_is_adopted_and_in_the_end_lost(store: Store, candidate: str) -> None:
    job, _ = store.jobs.submit("key", "evaluate", candidate, {})
    for attempt in (1, 2, 3):
        claimed = store.jobs.claim(f"{ME}0", 1)  # same host and process, another start time: it has ended
        assert claimed is not None and claimed.attempts == attempt
        (adopted,) = store.jobs.adopt(processes.gone)
    assert (adopted.id, adopted.state) == (job.id, "lost")
    assert adopted.error == "its process disappeared 3 times"


def test_a_job_whose_owner_lives_is_left_alone(store: Store, candidate: str) -> None:
    store.jobs.submit("key", "evaluate", candidate, {})
    store.jobs.claim(ME, 1)
    assert store.jobs.adopt(processes.gone) == []


def test_on_another_machine_the_heartbeat_decides(store: Store, candidate: str) -> None:
    job, _ = store.jobs.submit("key", "evaluate", candidate, {})
    store.jobs.claim("elsewhere:1:1", 1)
    assert store.jobs.adopt(processes.gone) == []
    store.database.here().execute("UPDATE jobs SET heartbeat = heartbeat - 60")
    (adopted,) = store.jobs.adopt(processes.gone)
    assert (adopted.id, adopted.state) == (job.id, "queued")


def test_progress_never_runs_backwards(store: Store, candidate: str) -> None:
    job, _ = store.jobs.submit("key", "evaluate", candidate, {})
    store.jobs.claim(ME, 1)
    store.jobs.report(job.id, ME, stage="compile", progress=0.5, message="")
    store.jobs.report(job.id, ME, stage="simulate", progress=0.2, message="")
    now = store.jobs.get(job.id)
    assert now is not None and (now.stage, now.progress) == ("simulate", 0.5)
