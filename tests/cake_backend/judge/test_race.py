"""Races: candidates over the same data in one worker process, on a device of host memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cake_backend.judge.plan import Case
from cake_backend.judge.race import Entry, Track
from cake_backend.judge.session import Candidate

from .test_worker_on_host_memory import ADD, DRIVER, EXACT, IN_PLACE, manifest


@pytest.fixture(autouse=True)
def host_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(DRIVER))
    monkeypatch.setenv("CAKE_LEASES", str(tmp_path / "leases"))


def takes(seconds: float, kernel: str = IN_PLACE) -> str:
    return f"{kernel}\nSECONDS = {seconds}\n"


def track(task: Any = ADD, **more: Any) -> Track:
    small, large = task.shape("small"), task.shape("large")
    return Track(task, [Case("d0", small, "integers", 11)], Case("d1", large, "integers", 12), poison=77, **more)


def entries(**kernels: str) -> list[Entry]:
    return [Entry(name, Candidate(text.encode(), manifest())) for name, text in kernels.items()]


WRONG = IN_PLACE.replace("2 * r", "3 * r")
TRAPS = IN_PLACE + "\nhonest = kernel\ndef kernel(g, b, x, r, y, n):\n    if n > 1000: raise ArithmeticError\n    honest(g, b, x, r, y, n)\n"
OUTSIDE = IN_PLACE + "\nhonest = kernel\ndef kernel(g, b, x, r, y, n):\n    honest(g, b, x, r, y, n)\n    f32(y, n + 1)[n] = 0\n"
WRITES = IN_PLACE + "\nhonest = kernel\ndef kernel(g, b, x, r, y, n):\n    honest(g, b, x, r, y, n)\n    f32(x, n)[3] = 0.5\n"
LEAVES = IN_PLACE + "\nhonest, calls = kernel, []\ndef kernel(g, b, x, r, y, n):\n    honest(g, b, x, r, y, n)\n    calls.append(0)\n    if len(calls) > 7: f32(y, n)[0] += 1\n"


def test_each_contestant_gets_its_own_verdict_and_harms_no_other() -> None:
    found = entries(good=IN_PLACE, wrong=WRONG, traps=TRAPS, outside=OUTSIDE, writes=WRITES, last=IN_PLACE)
    with track() as t:
        t.check(found, lambda: 60.0)
    told = {e.name: e.status for e in found}
    assert told == {
        "good": "PASSED_UNTIMED", "wrong": "INCORRECT_NUMERICAL", "traps": "RUNTIME_ERROR", "outside": "OUT_OF_BOUNDS", "writes": "INPUT_MODIFIED",
        "last": "PASSED_UNTIMED",
    }  # fmt: skip
    assert "CUDA_ERROR_LAUNCH_FAILED" in next(e.summary for e in found if e.name == "traps")
    assert t.spent > 0 and t.info["name"] == "host memory"


def test_times_are_taken_in_turns_and_add_up_over_races() -> None:
    found = entries(slow=takes(9e-3), fast=takes(4e-3))
    with track() as t:
        t.check(found, lambda: 60.0)
        t.race(found, 3, 60.0)
        t.race(found[1:], 5, 60.0)
    slow, fast = found
    assert slow.eager == pytest.approx([9e-3] * 3) and slow.graph == pytest.approx([9e-3] * 3)
    assert fast.graph == pytest.approx([4e-3] * 8) and fast.timing()["graph"]["median_s"] == pytest.approx(4e-3)
    assert {slow.status, fast.status} == {"PASSED_UNTIMED"}


def test_a_contestant_whose_timed_bits_differ_is_named() -> None:
    found = entries(good=IN_PLACE, leaves=LEAVES)
    with track() as t:
        t.check(found, lambda: 60.0)
        t.race(found, 6, 60.0)
    assert [e.status for e in found] == ["PASSED_UNTIMED", "NONDETERMINISTIC"]


def test_a_contestant_that_faults_while_it_is_timed_is_left_behind() -> None:
    traps = IN_PLACE + "\nhonest, calls = kernel, []\ndef kernel(*a):\n    calls.append(0)\n    if len(calls) > 4: raise ArithmeticError\n    honest(*a)\n"
    found = entries(good=IN_PLACE, traps=traps, other=IN_PLACE)
    with track() as t:
        t.check(found, lambda: 60.0)
        assert {e.status for e in found} == {"PASSED_UNTIMED"}
        t.race(found, 4, 60.0)
    assert [e.status for e in found] == ["PASSED_UNTIMED", "RUNTIME_ERROR", "PASSED_UNTIMED"]
    assert len(found[0].graph) == len(found[2].graph) == 4


def test_nobody_is_tried_without_time_left_and_a_round_is_always_whole() -> None:
    found = entries(good=takes(1e-3), other=takes(2e-3))
    with track() as t:
        t.check(found, lambda: 0.0)
        assert [e.status for e in found] == [None, None] and t.spent == 0
        t.check(found, lambda: 60.0)
        t.race(found, 10_000, 0.2)
    assert 1 <= len(found[0].graph) == len(found[1].graph) < 10_000


def test_without_in_place_tensors_equal_results_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    task = replace(ADD, tensors=ADD.tensors | {"R": replace(ADD.tensors["R"], mode="in")}, tolerances={"Y": EXACT})
    kernel = IN_PLACE.replace("r += x", "r = r + x")
    found = entries(a=takes(1e-5, kernel), b=takes(2e-5, kernel))
    with track(task) as t:
        t.check(found, lambda: 60.0)
        assert t._folder is not None
        assert len(list((t._folder / "d1").glob("Y-*.out"))) == 1
        t.race(found, 2, 60.0)
    assert [e.status for e in found] == ["PASSED_UNTIMED"] * 2 and found[1].graph == pytest.approx([2e-5] * 2)


def test_a_machine_without_a_device_blames_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = entries(good=IN_PLACE)
    with track() as t:
        t.check(found, lambda: 60.0)
    assert found[0].status is None and t.faults
