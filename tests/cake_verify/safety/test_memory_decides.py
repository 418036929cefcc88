"""Branches, loops and stores that depend on numbers in memory: runs go where the numbers allow, and no further."""

import pytest

from bench.verify.cases import CASES
from cake_ir import parse, specialise
from cake_verify import verify_text
from cake_verify.analyses.settings import Settings


def settings(name):
    case = CASES[name]
    program = specialise(parse(case.text()).schedules[0], case.params).program
    return Settings(program).find()


def changed(name, *edits):
    case = CASES[name]
    text = case.text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    verdict = verify_text(text, params=case.params)
    return verdict.verdict, [d.code for d in verdict.shown() if d.severity == "error"]


@pytest.mark.parametrize("name", ["moe_gather_up", "moe_masked_down"])
def test_runs_go_both_ways_of_a_branch_on_a_count_in_memory(name):
    found, _ = settings(name)
    counts = [n for s in found for n in s.lengths["COUNT"]]
    assert 0 in counts
    assert max(counts) >= 32
    assert all(s.args["CAP"] >= n for s in found for n in s.lengths["COUNT"])


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("moe_gather_up", ("                lm.sync(cta)\n", "")),
        ("moe_gather_up", ("lm.cp_wait(pending=STAGES - 2)", "pass")),
        ("moe_masked_down", ("                    lm.arrive(empty, stage=s)\n", "")),
        ("moe_masked_down", ("            if t.m * 64 < n:\n                for k", "            if t.m * 64 <= n:\n                for k")),
    ],
)
def test_what_stands_behind_such_a_branch_is_walked(name, edit):
    verdict, codes = changed(name, edit)
    assert verdict == "fail", (verdict, codes)


@pytest.mark.parametrize(
    ("name", "edit", "code"),
    [
        ("moe_masked_down", (", mask=lm.in_bounds(acc, lm.min(n, CAP) - t.m * 64, N - t.n * BN)", ""), "S033"),
        ("moe_gather_up", ("coords=(t.n * BN, t.m * BM, t.e), mask=inside)", "coords=(t.n * BN, t.m * BM, t.e))"), "S036"),  # the mask has a name, and nothing uses it
    ],
)
def test_a_store_behind_such_a_branch_stays_inside_its_tensor(name, edit, code):
    assert changed(name, edit) == ("fail", [code])


def test_a_branch_that_no_number_tried_takes_is_not_decided():
    verdict, _ = changed("moe_masked_down", ("if t.m * 64 < lm.ld(COUNT, t.e):", "if t.m * 64 < lm.ld(COUNT, t.e) - 9000:"), ("if t.m * 64 < n:", "if t.m * 64 < n - 9000:"))
    assert verdict == "undecided"


def test_the_bounds_of_an_access_are_not_judged_by_lengths_that_a_run_invents():
    verdict, codes = changed("gemm_blocksparse")
    assert (verdict, codes) == ("pass", [])


@pytest.mark.parametrize(
    ("mask", "row"),
    [("clip=True", "up to row"), ("mask=lm.in_bounds(acc, t.rows + 1, N - t.n * BN)", "up to row"), ("mask=lm.in_bounds(acc, t.rows - 1, N - t.n * BN)", "is not written")],
)
def test_rows_that_threads_store_of_a_grouped_tile_are_its_own(mask, row):
    case = CASES["gemm_grouped_cp_async"]
    text = case.text().replace("mask=lm.in_bounds(acc, t.rows, N - t.n * BN)", mask)
    (error,) = [d for d in verify_text(text, params=case.params).shown() if d.severity == "error"]
    assert error.code == "Q001"
    assert row in error.message


def test_a_loop_over_earlier_tiles_is_as_long_as_later_tiles_make_it():
    found, lost = settings("gemm_stream_k")
    assert not lost
    assert any(s.args["UNITS"] > 2 for s in found)


def test_a_loop_inside_others_that_multiply_its_length_gets_rounds_of_its_own():
    found, lost = settings("conv_implicit")
    assert not lost
    assert max(s.trips[0] for s in found) > 1


def test_members_that_a_condition_keeps_from_arriving_are_named():
    text = CASES["gemm_split_send"].text().replace("                lm.store(C, acc", "                lm.arrive(read, stage=m)\n                lm.store(C, acc")
    text = text.replace("clip=True)\n            lm.arrive(read, stage=m)\n", "clip=True)\n")
    (error,) = [d for d in verify_text(text).shown() if d.severity == "error"]
    assert error.code == "S008"
    assert error.message.startswith("`read` counts 16 arrivals a phase from all 4 CTAs of the cluster, and `math` of CTA 1 never arrives")
    assert error.fixes[0].title == "move `lm.arrive(read, stage=m)` behind the condition"
    fixed = verify_text(_applied(text, error.fixes[0]))
    assert fixed.verdict == "pass"


def _applied(text, fix):
    from cake_verify.proposals import applied

    return applied(text, fix.edits)


def test_one_element_of_a_matrix_is_not_read_by_number():
    text = CASES["moe_masked_down"].text().replace('COUNT: LM.gmem1d[LM.i32, "E"]', 'COUNT: LM.gmem2d[LM.i32, "E", 1]')
    errors = [d for d in verify_text(text).shown() if d.severity == "error"]
    assert {d.code for d in errors} == {"D021"}
    assert errors[0].message == "`lm.ld` reads element `i` of a 1-D tensor, `COUNT` has 2 dimensions"
