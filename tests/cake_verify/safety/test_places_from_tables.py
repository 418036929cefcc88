"""Accesses whose place a table or a tile's own rounds decide: what is known of them is used, and what a vector's place is, is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text

CORPUS = Path(__file__).resolve().parents[3] / "bench" / "verify" / "corpus"


def corpus(name: str, *edits: tuple[str, str]) -> str:
    text = (CORPUS / f"{name}.py").read_text("utf-8")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_halves_of_one_row_of_a_table_do_not_meet() -> None:
    assert verify_text(corpus("rope_kv_halves")).verdict == "pass"


@pytest.mark.parametrize("column", ["0", "32"])
def test_parts_of_a_row_of_a_table_that_share_columns_are_not_decided(column: str) -> None:
    found = verify_text(corpus("rope_kv_halves", ("lm.store(KC, r1, coords=(64,", f"lm.store(KC, r1, coords=({column},")))
    assert found.verdict == "undecided" and "`KC`" in found.diagnostics[0].message


def test_columns_beside_a_vector_of_rows_do_not_meet() -> None:
    assert verify_text(corpus("decode_split_table")).verdict == "pass"
    same = verify_text(corpus("decode_split_table", ("lm.store(ML, l, coords=(1,", "lm.store(ML, l, coords=(0,")))
    assert same.verdict != "pass"


def test_one_column_of_a_vector_of_rows_stays_inside_or_does_not() -> None:
    outside = verify_text(corpus("decode_split_table", ("lm.store(ML, l, coords=(1,", "lm.store(ML, l, coords=(2,")))
    assert [d.code for d in outside.errors][:1] == ["S033"] and "`ML` has 2" in outside.errors[0].message


ROUNDS = "rows = lm.min(SPAN, T - begin)"


@pytest.mark.parametrize(("rounds", "refused"), [(ROUNDS, False), ("rows = lm.min(SPAN, T - begin + 1)", True), ("rows = lm.min(SPAN, T)", True), ("rows = SPAN", True), ("rows = lm.max(SPAN, T - begin)", True)])
def test_rounds_counted_from_the_tile_keep_rows_inside(rounds: str, refused: bool) -> None:
    found = {d.code for d in verify_text(corpus("conv_silu_rounds", (ROUNDS, rounds))).errors}
    assert ("S033" in found) is refused


def test_a_vector_along_the_wrong_axis_is_told_as_that_and_not_exchanged() -> None:
    found = verify_text(corpus("router_top2", ("coords=(e, rows), mask=inside", "coords=(e, t.blk * 64), mask=inside")))
    assert [d.code for d in found.errors] == ["D035", "D035"]  # and nothing else on their lines
    first = found.errors[0]
    assert "lays the 64 elements of a row vector along axis 0 of `ID`, which has 2" in first.message
    assert "`lm.iota(<its tile>, 0, base=t.blk * 64)`" in first.help and not first.fixes


def test_scales_that_count_row_tiles_and_words_along_one_axis_follow_both() -> None:
    assert verify_text(corpus("tcgen05_mxf8_row_blocks")).verdict == "pass"


@pytest.mark.parametrize("wrong", ["(t.m * kb + b + 1) * 32", "(t.n * kb + b) * 32", "(t.m + b) * 32", "b * 32", "(t.m * kb) * 32", "(t.m * kb + b) * 16"])
def test_scales_of_other_rows_or_words_along_that_axis_are_refused(wrong: str) -> None:
    found = verify_text(corpus("tcgen05_mxf8_row_blocks", ("coords=(0, (t.m * kb + b) * 32)", f"coords=(0, {wrong})")))
    assert [d.code for d in found.errors] == ["S045"] and "`SA`" in found.errors[0].message


@pytest.mark.parametrize(("view", "tensor", "row"), [("kb", "k", "nxt"), ("vb", "v", "nxt"), ("kb", "k", "first"), ("vb", "v", "first")])
def test_copies_that_a_table_places_lie_along_one_axis(view: str, tensor: str, row: str) -> None:
    right = f"{view}.cp_async({tensor}, coords=(t.h * D, {row}),"
    found = verify_text(corpus("blocksparse_prefill", (right, right.replace(f"(t.h * D, {row})", f"({row}, t.h * D)"))))
    assert [d.code for d in found.errors][:1] == ["D035"] and found.errors[0].span.line == corpus("blocksparse_prefill").split("\n").index(next(x for x in corpus("blocksparse_prefill").split("\n") if right in x)) + 1


POOLED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def pooled(lm, POOL: LM.gmem2d[LM.f32, "SR", 512].inout, X: LM.gmem2d[LM.f32, "B", 512], SLOT: LM.gmem1d[LM.i32, "B"], B: LM.i32, H: LM.i32, SR: LM.i32, SLOTS: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(SR == SLOTS * H and H > 0 and SLOTS > 0)
    lm.assume_values(SLOT, 0, SLOTS)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(H, B), names=("h", "b"))
    with work:
        for t in lm.tiles(sched):
            row = lm.ld(SLOT, t.b) * H + t.h
            lm.store(POOL, lm.load(POOL, coords=(0, row), shape=(512,)) + lm.load(X, coords=(0, t.b), shape=(512,)), coords=(0, row))
"""


def test_parts_of_the_entries_of_a_table_are_apart_where_the_parts_are_as_many_as_the_factor_says() -> None:
    assert verify_text(POOLED).verdict == "pass"
    assert verify_text(POOLED.replace("* H + t.h", "* SLOTS + t.h").replace("SLOT, 0, SLOTS", "SLOT, 0, H")).verdict != "pass"


FLAT = POOLED.replace("SR == SLOTS * H", "SR == SLOTS * H * 4").replace("tiles=(H, B), names=(\"h\", \"b\")", "tiles=(2, H, B), names=(\"p\", \"h\", \"b\")").replace("shape=(512,)", "shape=(2, 512)").replace(
    "lm.ld(SLOT, t.b) * H + t.h", "(lm.ld(SLOT, t.b) * H + t.h) * 4 + t.p * 2").replace("lm.load(X, coords=(0, t.b), shape=(2, 512))", "1.0")  # fmt: skip


def test_parts_of_parts_are_apart_too_as_long_as_an_access_keeps_to_one() -> None:
    assert verify_text(FLAT).verdict == "pass"
    assert verify_text(FLAT.replace("* 4 + t.p * 2", "* 4 + t.p")).verdict != "pass"


SCATTERED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def scattered(lm, Y: LM.gmem2d[LM.f32, "B", "V"].inout, IDS: LM.gmem2d[LM.i32, "B", "M"], B: LM.i32, V: LM.i32, M: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(M == 256)
    lm.assume_values(IDS, 0, V)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            for i in lm.range(ROUNDS):
                at = lm.load(IDS, coords=(128 * i, t.b), shape=(128,), form="vec")
                y = lm.load(Y, coords=(at, t.b), shape=(128,), form="vec", like=at)
                lm.store(Y, y * 0.5, coords=(at, t.b))
"""


def test_a_lane_reads_and_writes_the_elements_that_its_own_numbers_name() -> None:
    once = SCATTERED.replace("            for i in lm.range(ROUNDS):\n", "            for i in lm.static_range(1):\n").replace("M == 256", "M == 128")
    assert verify_text(once).verdict == "pass"
    other = once.replace("lm.store(Y, y * 0.5, coords=(at,", "to = at + 0\n                lm.store(Y, y * 0.5, coords=(to,")
    assert verify_text(other).verdict == "undecided"


def test_the_numbers_of_another_round_may_name_another_lanes_elements() -> None:
    assert verify_text(SCATTERED.replace("ROUNDS", "M // 128")).verdict == "undecided"
