"""The store under several processes, and under kill -9."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cake_mcp.store import Store, StoreBusy
from cake_mcp.store import database as database_module

WRITER = """
import sys
from pathlib import Path
from cake_mcp.store import Store
store = Store(Path(sys.argv[1]))
for i in range(int(sys.argv[3])):
    candidate, _ = store.candidates.add(f"{sys.argv[2]} {i}", {"i": i}, target="sm_90a", task=None, rationale="r")
    store.verdicts.record(candidate.id, "q", {"verdict": "pass", "diagnostics": [], "elapsed_ms": 1.0})
    print(candidate.id, flush=True)  # the answer: from here on it must not be lost
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(count)], stdout=subprocess.PIPE, text=True)


def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cake.db"  # not there yet: all four also race to create and migrate it
    writers = [writer(path, f"writer{n}", 50) for n in range(4)]
    answered = [line.strip() for process in writers for line in process.communicate(timeout=60)[0].splitlines()]
    assert [process.returncode for process in writers] == [0, 0, 0, 0]
    assert len(set(answered)) == 200
    store = Store(path)
    assert {candidate.id for candidate in store.candidates.all()} == set(answered)
    assert store.verdicts.passed() == set(answered)


def test_a_killed_process_loses_nothing_it_had_answered(tmp_path: Path) -> None:
    path = tmp_path / "cake.db"
    answered: list[str] = []
    for round_ in range(3):
        process = writer(path, f"round{round_}", 100_000)
        assert process.stdout is not None
        for _ in range(8 + 5 * round_):
            answered.append(process.stdout.readline().strip())
        os.kill(process.pid, signal.SIGKILL)
        rest = process.communicate()[0].splitlines()
        answered += [line for line in rest if len(line) == len(answered[0])]
    store = Store(path)
    there = {candidate.id for candidate in store.candidates.all()}
    assert set(answered) <= there
    assert set(answered) <= store.verdicts.passed()
    (integrity,) = store.database.here().query("PRAGMA integrity_check")
    assert integrity == {"integrity_check": "ok"}


def test_a_lock_that_is_never_released_is_a_typed_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.2)
    first, second = Store(tmp_path / "cake.db"), Store(tmp_path / "cake.db")
    start = time.monotonic()
    with first.database.write(), pytest.raises(StoreBusy, match="locked by another process"):
        second.candidates.add("text", {}, target=None, task=None)
    assert time.monotonic() - start < 5
    second.candidates.add("text", {}, target=None, task=None)
    assert first.candidates.count() == 1
