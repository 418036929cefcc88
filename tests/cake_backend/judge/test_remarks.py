"""What the assembler says reaches the user at a line of the schedule, and the gates say it before anything is compiled.

Each pair compiles a schedule past the gates on both sides of the line that a rule draws: the remark comes exactly where the rule speaks.
"""

from __future__ import annotations

from typing import Any

import pytest

import cake_kernels
from cake_backend.cost.coverage import REASONS
from cake_backend.diagnose import diagnose
from cake_backend.judge import evaluate
from cake_backend.judge.building import build_program
from cake_backend.judge.status import Status
from cake_backend.toolchain import nvrtc_version
from cake_ir import parse, specialise
from cake_ir.program import Program
from cake_verify import verify_text
from cake_verify.rule import pages
from cake_verify.rules.examples import LOOP, TILE, edit

pytestmark = pytest.mark.skipif(nvrtc_version() == "nvrtc unavailable", reason="no NVRTC wheel installed")


def program_of(text: str) -> Program:
    made = specialise(parse(text).schedules[0])
    assert made.program is not None, made.faults
    return made.program


def said(text: str) -> dict[str, str]:
    """Errors and warnings of the gates, by code."""
    return {d.code: d.message for d in verify_text(text, suggest=False).diagnostics if d.severity != "note"}


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


def built(text: str) -> Any:
    return build_program(program_of(text), text, timeout=60)


def remarks(text: str) -> dict[str, int | None]:
    return {r["code"]: r["line"] for r in built(text).report["remarks"]}


def tile(columns: int, warps: int) -> str:
    """One output tile of `columns` in a block of `warps` warps, of which four multiply."""
    return edit(TILE, ("shape=(128, 64)", f"shape=({columns}, 64)"), ("shape=(64, 128)", f"shape=(64, {columns})"), ("lm.smem(24576)", f"lm.smem({8192 + columns * 128})"),
                ("range(4, 8)", f"range(4, {warps})"))  # fmt: skip


@pytest.mark.parametrize(("columns", "warps", "needed", "has"), [(256, 16, 154, 128), (128, 24, 90, 80), (96, 28, 74, 72)])
def test_an_accumulator_that_the_launch_does_not_hold_is_refused_and_does_not_compile(columns: int, warps: int, needed: int, has: int) -> None:
    text = tile(columns, warps)
    assert f"needs {needed} registers a thread at launch, {32 * warps} threads start with {has}" in said(text)["H006"]
    refused = built(text)
    assert refused.status is Status.COMPILE_ERROR and refused.summary.startswith(f"line {line_of(text, 'lm.mma(')}: ")
    (remark,) = [r for r in refused.report["remarks"] if r["severity"] == "error"]
    assert remark["code"] == "C7602" and f"register target of {needed}" in remark["text"], "the assembler's own number is ours"
    (finding,) = diagnose({"status": "COMPILE_ERROR", "compile": refused.report}, program_of(text))
    assert finding.id == "B16" and finding.line == line_of(text, "lm.mma(")


@pytest.mark.parametrize(("columns", "warps"), [(128, 20), (96, 24), (160, 16)])
def test_an_accumulator_that_just_fits_is_accepted_and_compiles(columns: int, warps: int) -> None:
    text = tile(columns, warps)
    assert said(text) == {} and "C7602" not in remarks(text)


def test_a_budget_below_the_accumulator_is_refused_and_ignored_by_the_assembler() -> None:
    low, enough = edit(LOOP, ("regs=232", "regs=88")), edit(LOOP, ("regs=232", "regs=96"))
    assert "asks for 88 registers a thread, its accumulator of 128 columns needs 90" in said(low)["H006"]
    record = built(low).report
    assert {r["code"]: r["line"] for r in record["remarks"]} == {"C7507": line_of(low, "regs=88")}
    assert [(f.id, f.line) for f in diagnose({"status": "PASSED", "compile": record}, program_of(low)) if f.id == "B16"] == [("B16", line_of(low, "regs=88"))]
    assert said(enough) == {} and remarks(enough) == {}


def test_more_blocks_than_threads_allow_drop_every_budget() -> None:
    many, few = (edit(LOOP, ('grid="persistent")', f'grid="persistent", ctas_per_sm={n})'), ("regs=232", "regs=104"), ("regs=40", "regs=24")) for n in (9, 4))
    assert "9 blocks of 256 threads are 2,304 threads, an SM has 2,048" in said(many)["H006"]
    assert remarks(many) == {"bounds-ignored": line_of(many, "ctas_per_sm"), "C7508": line_of(many, "regs=104")}
    assert "C7508" not in remarks(few) and "bounds-ignored" not in remarks(few)


def test_accumulators_that_a_role_does_not_hold_together_are_told_and_serialised() -> None:
    page = pages()["H015"]
    assert "needs 26 beside, it has 152" in said(page.failing)["H015"]
    found = remarks(page.failing)
    assert {"C7512", "spill"} <= set(found) and found["C7512"] == line_of(page.failing, "lm.mma(acc") == found["spill"]
    assert said(page.passing) == {} and not {"C7511", "C7512", "spill"} & set(remarks(page.passing))
    record = {"status": "PASSED", "compile": built(page.failing).report}
    assert {f.id for f in diagnose(record, program_of(page.failing))} >= {"B14", "B15"}


def test_a_branch_with_other_groups_in_flight_is_refused_by_the_gate_and_by_the_lowering() -> None:
    page = pages()["H012"]
    assert "H012" in said(page.failing)
    refused = built(page.failing)
    assert refused.status is Status.NOT_LOWERED and refused.summary.startswith("line ")
    assert not [r for r in built(page.passing).report["remarks"] if r["serialises"]]


@pytest.mark.parametrize("body", ["        acc = acc * 2.0\n        lm.mma_wait(pending=0)", ""])
def test_an_accumulator_touched_in_flight_is_refused_and_gets_a_wait_from_the_assembler(body: str) -> None:
    text = edit(TILE, ("        lm.mma_wait(pending=0)", body))
    assert list(said(text)) == ["S005"]
    (remark,) = [r for r in built(text).report["remarks"] if r["serialises"]]
    assert remark["code"] == "C7517" and abs(remark["line"] - line_of(text, "lm.mma(")) <= 2, "at the MMA or at what touches it"
    assert said(TILE) == {} and remarks(TILE) == {}


def test_attention_on_both_sides_of_its_budget() -> None:
    text = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == ("attention", "hopper"))
    low, enough = text.replace("REGS=232, L", "REGS=184, L"), text.replace("REGS=232, L", "REGS=192, L")
    assert low != text and "keeps 160 registers" in said(low)["H015"] and "H015" not in said(enough)
    assert "C7512" in remarks(low) and remarks(enough) == {}


def test_a_run_record_holds_the_remark_as_a_finding_with_its_line() -> None:
    text = next(s.text for s in cake_kernels.schedules() if (s.family, s.name) == ("kmeans_assign", "hopper"))
    record = evaluate(text, task=cake_kernels.tasks()["kmeans_assign"], device="simulate", options={"policies": 1}, params={"REGS": 160})
    found = {f["code"]: f for f in record["findings"] if f["kind"] == "assembler"}
    assert found["spill"]["line"] == line_of(text, "lm.mma(") and "spill stores" in found["spill"]["text"]


def test_rank_withholds_its_number_where_the_assembler_will_serialise() -> None:
    from cake_backend.cost import predict  # the public entry of the model

    page = pages()["H015"]
    answer = predict(program_of(page.failing), {"M": 4096, "N": 4096, "K": 4096})
    fine = predict(program_of(page.passing), {"M": 4096, "N": 4096, "K": 4096})
    assert any(w.code == "R08" for w in answer.withheld) and "R08" in REASONS and "serialise" in answer.last
    assert not any(w.code == "R08" for w in fine.withheld) and fine.last == ""
