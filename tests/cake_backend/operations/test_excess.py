"""`lm.excess`: what a row must fall by, and the assignments that are skipped where no row of the warp must."""

import re
from pathlib import Path

import numpy as np
import pytest
from vertical import agree, codes, compiles, generated, passes, simulated

ROWS = """
@cake.schedule(target="sm_90a")
def settle(lm, X: LM.gmem2d[LM.f32, 64, 64], Y: LM.gmem2d[LM.f32, 64, 64], E: LM.gmem1d[LM.f32, 64], A: LM.gmem2d[LM.f32, 64, 64]):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")
            a = lm.load(A, coords=(0, 0), shape=(64, 64), form="acc")
            by = lm.excess(x, margin=8.0)
            x = x - by
            a = a * lm.exp2(-by)
            lm.store(Y, x, coords=(0, 0))
            lm.store(A, a, coords=(0, 0))
            lm.store(E, by, coords=(0,))
"""


def tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    x = -np.abs(rng.standard_normal((64, 64))).astype(np.float32) - 1
    x[3, 7], x[20, 0], x[21, 63], x[22, 5] = 2.5, 0.0, -0.0, np.nan  # warps 0 and 1; the others have none
    x[23], x[24, 9] = np.nan, np.inf
    return {"X": x, "Y": np.zeros_like(x), "E": np.zeros(64, np.float32), "A": rng.standard_normal((64, 64)).astype(np.float32)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_falls_by_its_largest_value_and_the_margin(tmp_path: Path) -> None:
    given = tensors()
    passes(ROWS)
    got = simulated(ROWS, given, {}, every=True)
    agree(got, generated(ROWS, given, {}, tmp_path))
    want = np.zeros(64, np.float32)
    want[3], want[20], want[24] = 10.5, 8.0, np.inf
    assert np.array_equal(got["E"], want), "negative zero and what is no number do not count"
    assert np.array_equal(got["Y"], given["X"] - want[:, None], equal_nan=True)
    assert np.array_equal(got["A"], given["A"] * np.exp2(-want)[:, None])


def test_what_stays_as_it_is_stands_behind_a_vote() -> None:
    text = compiles(ROWS, "sm_90a")
    flag = re.search(r"const bool (\w+) = __any_sync", text)
    assert flag is not None and text.count(f"if ({flag[1]})") == 3, "the row maximum, x and a"
    assert text.count("by_signs[i_ % 4] &= ") == 1 and "fmaxf" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a = a * lm.exp2(-by)", "a = a * lm.exp2(1.0 - by)"),
        ("a = a * lm.exp2(-by)", "a = x * lm.exp2(-by)"),
        ("a = a * lm.exp2(-by)", "a = a * by"),
        ("a = a * lm.exp2(-by)", "by = by + 1.0\n            a = a * lm.exp2(-by)"),
    ],
    ids=["another factor", "another value", "a product with it", "a name that is bound again"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_changes_without_an_excess_is_always_done(tmp_path: Path, old: str, new: str) -> None:
    text = ROWS.replace(old, new)
    assert text != ROWS
    given = tensors()
    agree(simulated(text, given, {}, every=True), generated(text, given, {}, tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("lm.excess(x, margin=8.0)", "lm.excess(x, axis=0)", "N042"),
        ("lm.excess(x, margin=8.0)", "lm.excess(x, margin=100.0)", "N061"),
        ("lm.excess(x, margin=8.0)", "lm.excess(lm.cast(x, lm.bf16))", "D003"),
        ('X, coords=(0, 0), shape=(64, 64), form="acc"', "X, coords=(0, 0), shape=(64, 64)", "D002"),
    ],
    ids=["columns", "margin", "type", "form"],
)
def test_what_it_does_not_take_is_refused(old: str, new: str, code: str) -> None:
    assert old in ROWS
    assert codes(ROWS.replace(old, new)) == {code}
