"""Reported cases of the schedule gate."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from cases_schedule import ALL_TMA, CASES, DRAIN, FOUR_BARRIERS, ONE_BARRIER, PIPELINE, PRIMED, UNCLAMPED
from reported import Case, check_bad, check_good, edit

from cake_backend.cuda.lower import lower
from cake_backend.simulate import simulate
from cake_ir import parse, specialise
from cake_ir.scheduler import TileOrder, cluster_total, cta_tile
from cake_verify import verify_text


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bad_input_is_caught_once_by_its_rule_on_its_line(case: Case) -> None:
    for bad in case.bad:
        check_bad(bad)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_control_is_accepted(case: Case) -> None:
    for good in case.good:
        check_good(good)


def test_c040_every_trip_count_around_the_depth_is_right_in_the_simulator() -> None:
    program = specialise(parse(PRIMED).schedules[0]).program
    assert program is not None
    for n in (0, 1, 2, 3, 4, 6, 7):
        rows = max(n, 1) * 64
        x = np.arange(rows * 64, dtype=np.float32).reshape(rows, 64).astype(ml_dtypes.bfloat16)
        r = simulate(program, {"X": x, "Y": np.zeros_like(x)}, {"N": n})
        assert r.ok and np.array_equal(r.outputs["Y"][: n * 64], x[: n * 64]), n


def test_c040_the_fault_is_told_for_the_counts_at_which_it_happens() -> None:
    error = verify_text(edit(PIPELINE, ("    lm.assume(N >= 3)\n", ""))).errors[0]
    assert "N = " in str(error.facts["setting"])
    assert int(str(error.facts["setting"]).split("N = ")[1].split(",")[0]) < 3


def test_c042_the_parity_of_a_wait_counts_the_phases_of_its_own_barrier() -> None:
    def waits(text: str) -> list[str]:
        program = specialise(parse(text).schedules[0]).program
        assert program is not None
        return [line.split("//")[0].strip() for line in lower(program).text.split("\n") if line.strip().startswith("mbarrier_wait(full")]

    assert waits(FOUR_BARRIERS) == ["mbarrier_wait(full + 8u * (s % 4u), (s / 4u) & 1u);"]
    assert waits(ONE_BARRIER) == ["mbarrier_wait(full, s & 1u);"]


def test_c046_rows_that_the_copy_engine_cannot_take_are_refused_before_the_launch() -> None:
    """Rows of 1,000 bytes are where the mixed path came from: the launcher says why the tensor copy does not go."""
    program = specialise(parse(ALL_TMA).schedules[0]).program
    assert program is not None
    guards = [g for g in lower(program).manifest.guards if "stride(Q" in g.expr or "Q" in g.message]
    assert any("16 bytes" in g.message for g in guards), guards


def test_c048_every_order_of_the_scheduler_is_a_bijection_on_ragged_grids() -> None:
    for rows in (1, 7, 8, 9, 17, 20):
        for cols in (1, 3, 9):
            for raster in (None, "m", "n", "heavy_first"):
                for swizzle in (1, 2, 8) if raster != "heavy_first" else (1,):
                    order = TileOrder((rows, cols), raster=raster, swizzle=swizzle)
                    tiles = {cta_tile(order, i) for i in range(cluster_total(order))}
                    assert tiles == {(m, n) for m in range(rows) for n in range(cols)}


def test_c048_the_report_names_a_place_that_no_tile_writes() -> None:
    error = verify_text(UNCLAMPED).errors[0]
    assert "no tile writes `C` at (256, 8)" in error.message


@pytest.mark.parametrize(("accumulators", "advice"), [(2, ["P010"]), (1, [])])
def test_c050_advice_only_where_another_accumulator_is_free(accumulators: int, advice: list[str]) -> None:
    verdict = verify_text(DRAIN, params={"ACCS": accumulators})
    assert verdict.verdict == "pass"
    notes = [d for d in verdict.diagnostics if d.code == "P010"]
    assert [d.code for d in notes] == advice
    assert all("lm.wait(drained" in DRAIN.split("\n")[d.span.line - 1] and d.severity == "note" for d in notes)
