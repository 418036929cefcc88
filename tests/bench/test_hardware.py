"""The questions to the hardware compile, say what they ask, and what needs no GPU is answered the same again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from bench.hardware import run
from bench.hardware.merged_products import SURROUNDINGS, products_in
from bench.hardware.ptx import HEAD
from bench.hardware.questions import questions
from cake_backend.toolchain import compile_cuda

QUESTIONS = questions()


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_compiles_and_says_what_it_asks(name: str) -> None:
    question = QUESTIONS[name]
    assert question.CONTRACT.startswith("HW") and len(question.ASKS) > 20
    assert len(question.CASES) == len(set(question.CASES)) > 0
    build = compile_cuda(HEAD + question.SOURCE, "sm_90a", cache=None)
    assert build.cubin is not None, build.log[-800:]


def test_equal_products_are_dropped_straight_from_the_entry_and_kept_behind_a_branch() -> None:
    found = {name: products_in(SURROUNDINGS[name][0]) for name in ("straight, two", "behind a branch")}
    if None in found.values():
        pytest.skip("no disassembler here")
    assert found == {"straight, two": 1, "behind a branch": 4}


def asked(monkeypatch: pytest.MonkeyPatch, ends: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Five cases of which some end their process with an answer (`fault`), and some without one."""
    processes = []

    def process(_: Path, __: str, cases: list[str], seconds: float) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        processes.append(list(cases))
        told = []
        for case in cases:
            end = ends.get(case, {})
            if end and "fault" not in end:
                return told, end
            told.append(end or {"right": True})
            if end:
                break
        return told, {}

    monkeypatch.setattr(run, "_run", process)
    found = dict(run.ask(Path(), "question", list("abcde"), time.monotonic() + 100))
    return {**found, "processes": processes}


def test_cases_share_a_process_until_one_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    right, fault, broke = {"right": True}, {"fault": "CUDA_ERROR_ILLEGAL_INSTRUCTION"}, {"broke": "exit 1"}
    assert asked(monkeypatch, {}) == {**dict.fromkeys("abcde", right), "processes": [list("abcde")]}
    found = asked(monkeypatch, {"b": fault, "d": broke})
    assert found == {**dict.fromkeys("ace", right), "b": fault, "d": broke, "processes": [list("abcde"), list("cde"), ["e"]]}
    assert asked(monkeypatch, {"e": fault})["processes"] == [list("abcde")]


def test_a_process_that_answers_nothing_is_an_answer_of_its_first_case(tmp_path: Path) -> None:
    (tmp_path / "arrivals.cubin").write_bytes(b"no cubin")
    found = dict(run.ask(tmp_path, "arrivals", ["fresh, count 2"], time.monotonic() + 60))
    assert set(found) == {"fresh, count 2"} and set(found["fresh, count 2"]) & {"broke", "fault"}
    assert dict(run.ask(tmp_path, "arrivals", ["fresh, count 2"], time.monotonic() - 1)) == {"fresh, count 2": {"not_run": "the time was over"}}


def test_what_may_hang_is_asked_last_and_alone() -> None:
    order = run.shared([("named_barriers", "right"), ("named_barriers", "count 0"), *(("copy_start", c) for c in QUESTIONS["copy_start"].CASES)])
    assert [n for n, _ in order][-2:] == ["named_barriers"] * 2 and all(len(few) == 1 for _, few in order[-2:])
    assert sum(len(few) for _, few in order) == 2 + len(QUESTIONS["copy_start"].CASES)
