"""The questions to the hardware compile, say what they ask, and what needs no GPU is answered the same again."""

from __future__ import annotations

import pytest

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
