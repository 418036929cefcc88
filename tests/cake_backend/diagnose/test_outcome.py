"""How a run ended decides the route: candidate, verifier, lowering or environment."""

from collections.abc import Callable
from typing import Any

import pytest

from cake_backend.diagnose import diagnose
from cake_ir.program import Program


def test_a_rejection_carries_the_gates_own_words() -> None:
    diagnostic = {"code": "S004", "severity": "error", "message": "`acc` is read in flight", "span": {"line": 12}, "help": "wait first", "facts": {"place": "acc"}}
    found = diagnose({"status": "STATIC_REJECT", "verify": {"diagnostics": [diagnostic]}})
    assert [f.id for f in found] == ["E02"]
    assert found[0].claim == "[S004] `acc` is read in flight" and found[0].line == 12 and found[0].edit == "wait first" and found[0].numbers == {"place": "acc"}


def test_what_the_gates_accept_and_the_compiler_refuses_is_loweringss_fault() -> None:
    report = {"ok": False, "remarks": [{"code": "error", "severity": "error", "text": "identifier undefined", "line": 9}]}
    found = diagnose({"status": "COMPILE_ERROR", "compile": report})
    assert found[0].id == "E03" and found[0].route == "lowering" and found[0].line == 9


def test_register_starvation_is_the_candidates(example: Callable[..., Program]) -> None:
    report = {"ok": False, "remarks": [{"code": "C7602", "severity": "error", "text": "register target too small", "line": 30}]}
    found = diagnose({"status": "COMPILE_ERROR", "compile": report}, example("gemm_ws"))
    assert found[0].id == "B16" and found[0].route == "candidate"


def test_a_hang_names_the_barrier_at_the_source_and_who_should_arrive(example: Callable[..., Program]) -> None:
    program = example("gemm_ws")
    waits = [
        {"role": "math", "barrier": "ab_full", "stage": 0, "parity": 1, "iteration": 12, "warps": 16, "blocks": [0]},
        {"role": "load", "barrier": "ab_empty", "stage": 0, "parity": 0, "iteration": 12, "warps": 2, "blocks": [0]},
    ]
    found = diagnose({"status": "HANG", "hang": {"records": 18, "blocks": 2, "waits": waits}}, program)
    assert found[0].id == "E01" and found[0].route == "verifier" and found[0].certain
    assert found[0].line in {program.barriers["ab_full"].span.line, program.barriers["ab_empty"].span.line}
    assert "a phase" in found[0].edit
    alone = diagnose({"status": "HANG", "hang": {"waits": waits[1:]}}, program)
    assert alone[0].line == program.barriers["ab_empty"].span.line and "`math`" in alone[0].edit


@pytest.mark.parametrize(
    ("status", "id_", "route"),
    [
        ("NOT_LOWERED", "E04", "lowering"),
        ("OUT_OF_BOUNDS", "E05", "verifier"),
        ("INPUT_MODIFIED", "E06", "candidate"),
        ("RUNTIME_ERROR", "E07", "verifier"),
        ("INFRA_ERROR", "E08", "environment"),
        ("UNDECIDED", "E09", "candidate"),
        ("NONDETERMINISTIC", "W12", "verifier"),
        ("TIMEOUT", "E01", "verifier"),
    ],
)
def test_every_ending_has_its_route(status: str, id_: str, route: str, example: Callable[..., Program]) -> None:
    record: dict[str, Any] = {"status": status, "summary": "something", "numerics": {"cases": [{"bands": {"C": 8}}]}}
    found = diagnose(record, example("gemm_ws"))
    assert found[0].id == id_ and found[0].route == route


@pytest.mark.parametrize("record", [{}, {"status": "PASSED"}, {"status": "INCORRECT_NUMERICAL"}, {"status": "PASSED", "timing": {"shapes": [{}]}}, {"numerics": None}])
def test_a_record_with_holes_raises_nothing(record: dict[str, Any], example: Callable[..., Program]) -> None:
    diagnose(record)
    diagnose(record, example("gemm_ws"))


def test_a_fault_of_the_simulated_machine_is_given_with_its_case() -> None:
    fault = {"kind": "simulator", "code": "X008", "line": 51, "text": "the async proxy reads `c` too early", "trace": ["math 0: store"], "help": "add `lm.fence_proxy()`"}
    case = {"status": "NONDETERMINISTIC", "shape": "sim_ragged", "policy": "late", "seed": 7, "distribution": "normal"}
    found = diagnose({"status": "NONDETERMINISTIC", "findings": [fault], "numerics": {"label": "simulated", "cases": [case]}})
    assert [f.id for f in found] == ["W12"]
    assert found[0].line == 51 and found[0].route == "verifier" and found[0].edit == "add `lm.fence_proxy()`"
    assert found[0].numbers == {"trace": ["math 0: store"], "shape": "sim_ragged", "order": "late", "seed": 7}
