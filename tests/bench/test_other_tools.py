"""The schedules that are compared with other tools: right ones pass, and what the language can get wrong is refused and harmful."""

from __future__ import annotations

import pytest

from bench.verify.cases import CASES
from bench.verify.others import mutations, twins
from bench.verify.others.run import ASSERTION, REPORT, result_of
from bench.verify.sight import verdict_of
from bench.verify.truth import judge


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, case in twins.TWINS.items():
        monkeypatch.setitem(CASES, name, case)


def test_both_sides_name_the_same_mutations() -> None:
    assert {k: tuple(v) for k, v in twins.MUTATIONS.items()} == mutations.MUTATIONS


@pytest.mark.parametrize("kernel", twins.TWINS)
def test_the_right_schedule_passes_and_every_mutation_is_refused_and_harmful(kernel: str) -> None:
    assert verdict_of(twins.TEXTS[kernel], kernel)[0].verdict == "pass" and judge(twins.TEXTS[kernel], kernel).state == "harmless"
    for name in twins.MUTATIONS[kernel]:
        text = twins.mutated(kernel, name)
        if text is not None:
            assert verdict_of(text, kernel)[0].verdict == "fail", name
            assert judge(text, kernel).state == "harmful", name


def test_what_the_tools_print_is_read() -> None:
    assert result_of('noise\nRESULT {"outcome": "clean"}\n') == {"outcome": "clean"}
    assert [m.group(1) for m in REPORT.finditer("========= Invalid __global__ write of size 4 bytes\n=========     at k+0x10\n")] == ["Invalid __global__ write of size 4 bytes"]
    assert ASSERTION.search("kernel.py:3: Assertion `Buffer being accessed has outstanding writes` failed.")
