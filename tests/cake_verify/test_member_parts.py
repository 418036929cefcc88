"""Members that divide a result: what each reads, multiplies and stores is its own part."""

from __future__ import annotations

import pytest

from cake_verify.gates import verify_text
from cake_verify.rules.schedule.q018_member_parts import PAGE

HALVES = PAGE.passing
ROWS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def scaled(lm, X: LM.gmem2d[LM.f32, "R", 128], G: LM.gmem1d[LM.f32, "R"], L: LM.gmem1d[LM.i32, "R"], Y: LM.gmem2d[LM.f32, "R", 128], R: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(R % 128 == 0)
    work = lm.role(warps=range(0, 8), members=2)
    sched = lm.scheduler(kind="grid", tiles=(R // 128,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            first = t.r * 128 + 64 * work.index
            x = lm.load(X, coords=(0, first), shape=(64, 128), form="acc")
            g = lm.load(G, coords=(first,), shape=(64,), form="rowvec", like=x)
            n = lm.load(L, coords=(first,), shape=(64,), form="rowvec", like=x)
            x = lm.where(lm.iota(x, 1) < n, x * g, 0.0)
            lm.store(Y, x, coords=(0, first))
"""
ROTATED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def rotated(lm, X: LM.gmem2d[LM.f32, "T", 128], C: LM.gmem2d[LM.f32, "T", 64], S: LM.gmem2d[LM.f32, "T", 64], Y: LM.gmem2d[LM.f32, "T", 128], T: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 2), members=2)
    sched = lm.scheduler(kind="grid", tiles=(T,), names=("t",))
    with work:
        for t in lm.tiles(sched):
            own = lm.load(X, coords=(64 * work.index, t.t), shape=(64,), form="vec")
            other = lm.load(X, coords=(64 * (1 - work.index), t.t), shape=(64,), form="vec", like=own)
            c = lm.load(C, coords=(0, t.t), shape=(64,), form="vec", like=own)
            s = lm.load(S, coords=(0, t.t), shape=(64,), form="vec", like=own)
            if work.index == 0:
                lm.store(Y, own * c - other * s, coords=(64 * work.index, t.t))
            else:
                lm.store(Y, own * c + other * s, coords=(64 * work.index, t.t))
"""


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def test_parts_of_one_member_pass() -> None:
    assert codes(HALVES) == [] and codes(ROWS) == []


def test_who_takes_both_parts_means_both() -> None:
    assert codes(ROTATED) == []
    assert codes(changed(ROTATED, "lm.store(Y, own * c + other * s, coords=(64 * work.index, t.t))", "lm.store(Y, own * c, coords=(64 * work.index, t.t))")) == []


@pytest.mark.parametrize(("old", "new"), [
    ("b.cols(128 * work.index, 128)", "b.cols(128 * (1 - work.index), 128)"), ("b.cols(128 * work.index, 128)", "b.cols(128 - 128 * work.index, 128)"),
    ("coords=(128 * work.index, 0, t.t)", "coords=(128 * (1 - work.index), 0, t.t)"),
])  # fmt: skip
def test_the_part_that_is_multiplied_is_the_part_that_is_stored(old: str, new: str) -> None:
    (error,) = verify_text(changed(HALVES, old, new)).errors
    assert error.code == "Q018" and error.facts["role"] == "work"


def test_a_product_that_is_everybodys_is_nobodys_part() -> None:
    text = changed(HALVES, "b.cols(128 * work.index, 128)", "b.cols(0, 128)")
    assert codes(text) == ["S028"]  # half of what was brought is read by nobody, which says it all
    whole = changed(text, "            lm.mma_wait(pending=0)\n", "            lm.mma_wait(pending=0)\n            r = lm.frag(shape=(64, 256), dtype=lm.f32, form=\"acc\")\n            lm.mma(r, a, b.T, init=True)\n            lm.mma_wait(pending=0)\n"
                    "            lm.store(D, r, coords=(0, 0, 2 * t.t + work.index))\n")  # fmt: skip
    whole = changed(changed(whole, "T: LM.i32)", "T: LM.i32, D: LM.gmem3d[LM.f32, \"T2\", 64, 256], T2: LM.i32)"), "    pool =", "    lm.assume(T2 == 2 * T)\n    pool =")
    assert codes(whole) == ["Q018"]


def test_a_product_that_differs_in_anything_else_is_no_copy() -> None:
    rows = changed(changed(HALVES, "b.cols(128 * work.index, 128)", "b.cols(0, 128)"), "coords=(0, 0, t.t), shape", "coords=(0, 0, 2 * t.t + work.index), shape")
    assert "Q018" not in codes(rows)


@pytest.mark.parametrize("which", ["lm.load(G, coords=(first,)", "lm.load(L, coords=(first,)", "lm.store(Y, x, coords=(0, first)"])
def test_vectors_beside_a_tile_are_of_the_same_member(which: str) -> None:
    (error,) = verify_text(changed(ROWS, which, which.replace("first", "t.r * 128 + 64 * (1 - work.index)"))).errors
    assert error.code == "Q018" and "by -64 rows" in error.message


def test_positions_that_a_number_is_added_to_are_of_the_member_that_the_number_is_of() -> None:
    from bench.verify.cases import CASES
    from bench.verify.sight import verdict_of

    text, right = CASES["moba_lists"].text(), "64 * math.index + lm.iota(scores, 0)"
    assert right in text
    errors = verdict_of(text.replace(right, right.replace("math.index", "(1 - math.index)")), "moba_lists")[0].errors
    assert [e.code for e in errors] == ["Q018"]
