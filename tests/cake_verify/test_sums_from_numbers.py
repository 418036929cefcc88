"""Sums and bests that start from a number: what may be meant and what may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake_verify.gates import verify_text
from cake_verify.rules.consistency.d040_stands_still import LARGEST
from cake_verify.rules.consistency.d069_products_from_zero import _GEMM
from cake_verify.rules.consistency.d070_nearest_from_zero import _NEAREST

CORPUS = Path(__file__).resolve().parents[2] / "bench" / "verify" / "corpus"


def codes(text: str) -> list[str]:
    return [d.code for d in verify_text(text).errors]


def changed(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def corpus(name: str, *edits: tuple[str, str]) -> str:
    return changed((CORPUS / f"{name}.py").read_text("utf-8"), *edits)


def test_an_accumulator_that_the_first_product_starts_may_hold_anything() -> None:
    assert codes(changed(_GEMM, ("init=0.0", "init=1.0"))) == ["D069"]
    assert codes(changed(_GEMM, ("init=0.0", "init=1.0"), ("lm.mma(acc, a, b)", "lm.mma(acc, a, b, init=(k == 0))"))) == []
    bias = 'acc = lm.frag(shape=(16, 8), dtype=lm.f32, form="acc", init=0.0)'
    assert codes(changed(_GEMM, (bias, 'acc = lm.load(C, coords=(t.n * 8, t.m * 16), shape=(16, 8), form="acc", clip=True)'))) == []


def test_what_the_first_factor_makes_zero_may_start_from_anything() -> None:
    """Online softmax: the first maximum is greater than minus infinity, and what was summed before it counts nothing."""
    assert codes(changed(LARGEST, ("init=0.0", "init=1.0"))) == []
    assert codes(corpus("attention_token_table", ('form="acc", init=0.0', 'form="acc", init=1.0'))) == []
    assert codes(corpus("window_sinks", ('form="acc", init=0.0', 'form="acc", init=1.0'))) == ["D069"]


def test_a_row_sum_may_start_from_one_where_its_first_element_is_left_out() -> None:
    """The largest of a sorted list has the weight 1."""
    start = ("norm = lm.rowvec(like=z, init=0.0)", "norm = lm.rowvec(like=z, init=1.0)")
    assert codes(corpus("router_top2", start)) == ["D069"]
    skipped = ("            for e in lm.static_range(PICK):\n                (v, who) = best[e]\n                norm", "            for e in lm.static_range(1, PICK):\n                (v, who) = best[e]\n                norm")
    assert codes(corpus("router_top2", start, skipped)) == []


SERIES = """
@cake.schedule(target=("sm_80", "sm_90a"))
def series(lm, X: LM.gmem2d[LM.f32, "R", 256], Y: LM.gmem2d[LM.f32, "R", 256], R: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(256,))
            term = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=1.0)
            total = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=1.0)
            for i in lm.range(N):
                term = term * x * 0.5
                total = total + term
            lm.store(Y, total, coords=(0, t.r))
"""


def test_a_series_starts_from_its_first_term() -> None:
    assert codes(SERIES) == []
    assert codes(changed(SERIES, ("total = total + term", "total = total * x + 0.5"))) == []
    assert codes(changed(SERIES, ("term = term * x * 0.5", "term = lm.load(X, coords=(0, t.r), shape=(256,))"))) == ["D069"]


def test_counts_may_start_from_one_unless_each_is_a_part_of_a_sum() -> None:
    zeros = ('form="vec", init=0', 'form="vec", init=1')
    assert codes(corpus("moe_align", zeros)) == []
    assert codes(corpus("histogram", zeros)) == ["D069"]
    assert codes(corpus("cluster_histogram", zeros)) == ["D069"]


def test_rows_before_the_first_hold_one_number() -> None:
    text = corpus("causal_conv1d")
    one = 'c = lm.frag(shape=(BC,), dtype=lm.f32, form="vec", init=0.0, like=w0)'
    assert codes(text) == []
    assert codes(changed(text, (one, one.replace("0.0", "1.0")))) == ["D051"]
    assert codes(changed(text, ("init=0.0", "init=1.0"))) == []


@pytest.mark.parametrize(("number", "told"), [("lm.inf", []), ("1e30", []), ("0.0", ["D070"]), ("-lm.inf", ["D040"]), ("-1.0", [])])
def test_a_nearest_element(number: str, told: list[str]) -> None:
    assert codes(changed(_NEAREST, ("init=lm.inf", f"init={number}"))) == told


MERGED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def nearest(lm, X: LM.gmem2d[LM.f32, "N", "P"], Y: LM.gmem1d[LM.f32, "P"], IDX: LM.gmem1d[LM.i32, "P"], P: LM.i32, N: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(P % 256 == 0)
    work = lm.role(warps=[0])
    sched = lm.scheduler(kind="grid", tiles=(P // 256,), names=("p",))
    with work:
        for t in lm.tiles(sched):
            y = lm.load(Y, coords=(t.p * 256,), shape=(256,))
            best = lm.frag(shape=(256,), dtype=lm.f32, form="vec", init=lm.inf, like=y)
            idx = lm.frag(shape=(256,), dtype=lm.i32, form="vec", init=0, like=y)
            for j in lm.range(N):
                x = lm.load(X, coords=(t.p * 256, j), shape=(256,), like=y)
                d = (x - y) * (x - y)
                upd = d < best
                best = lm.where(upd, d, best)
                idx = lm.where(upd, j, idx)
            lm.store(IDX, idx, coords=(t.p * 256,))
"""


@pytest.mark.parametrize(("old", "new", "told"), [
    ("", "", []), ("init=lm.inf", "init=-lm.inf", ["D040"]), ("init=lm.inf", "init=0.0", ["D070"]), ("d < best", "best > d", []), ("d < best", "d > best", ["D040"]),
    ("dtype=lm.i32, form=\"vec\", init=0", "dtype=lm.i32, form=\"vec\", init=-1", []),
])  # fmt: skip
def test_a_best_that_a_comparison_keeps(old: str, new: str, told: list[str]) -> None:
    assert codes(MERGED.replace(old, new) if old else MERGED) == told


def test_nothing_found_has_an_index_of_its_own() -> None:
    text = changed(MERGED, ("init=lm.inf", "init=0.0"))
    assert codes(text) == ["D070"]
    assert codes(changed(text, ("dtype=lm.i32, form=\"vec\", init=0", "dtype=lm.i32, form=\"vec\", init=-1"))) == []


def test_an_integer_that_is_shifted_may_start_from_what_rounds_it() -> None:
    start = ("acc = lm.frag(shape=(BM, BN), dtype=lm.i32, form=\"acc\", warps=(2, 2), init=0)", "acc = lm.frag(shape=(BM, BN), dtype=lm.i32, form=\"acc\", warps=(2, 2), init=32)")
    text = corpus("gemm_w8a8_ada", start)
    assert codes(text) == ["D069"]
    assert "D069" not in codes(changed(text, ("lm.cast(acc, lm.f32)", "lm.cast(acc >> 6, lm.f32)")))


@pytest.mark.parametrize("of", ["lm.rcp(acc)", "1.0 / acc", "acc * acc", "lm.log(acc)"])
def test_one_plus_a_distance_is_a_form_of_its_own(of: str) -> None:
    text = changed(_GEMM, ("init=0.0", "init=1.0"))
    assert codes(changed(text, ("lm.store(C, acc,", f"lm.store(C, {of},"))) == []
    assert codes(changed(text, ("lm.store(C, acc,", "lm.store(C, acc / 2.0,"))) == ["D069"]
