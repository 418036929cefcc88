"""Running sorted lists: the k best of many columns for each row, with ties, missing values and a threshold."""

from pathlib import Path

import numpy as np
import pytest
from vertical import agree, codes, compiles, generated, passes, simulated

TEXT = """
@cake.schedule(target=("sm_80", "sm_90a"))
def best(lm, X: LM.gmem2d[LM.f32, "M", "N"], V: LM.gmem2d[LM.f32, "M", {k}], I: LM.gmem2d[LM.i32, "M", {k}], M: LM.i32, N: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            like = lm.frag(shape=(64, {bn}), dtype=lm.f32, form="acc")
            lst = lm.topk_list(like, k={k}, largest={largest})
            for j in lm.range(lm.cdiv(N, {bn})):
                x = lm.load(X, coords=(j * {bn}, t.m * 64), shape=(64, {bn}), form="acc", clip=True, fill={fill})
                lst = lm.topk({filter}, axis=1, base=j * {bn}, into=lst)
            lst = lm.finish(lst)
            rows = lm.iota(like, axis=0, base=t.m * 64)
            for i in lm.static_range({k}):
                val, idx = lst[i]
                lm.store(V, val, coords=(i, rows), mask=rows < M)
                lm.store(I, idx, coords=(i, rows), mask=rows < M)
"""


def text_of(k: int, bn: int, largest: bool, filtered: bool = False) -> str:
    fill, sign = ("-1e30", ">") if largest else ("1e30", "<")
    filter_ = f"lm.where(x {sign} lst.worst, x, {'-' if largest else ''}lm.inf)" if filtered else "x"
    return TEXT.format(k=k, bn=bn, largest=largest, fill=fill, filter=filter_)


def scores(m: int, n: int) -> np.ndarray:
    x = np.random.default_rng(0).integers(-40, 40, (m, n)).astype(np.float32)  # many ties
    x[3, ::2] = np.nan
    x[5] = np.nan
    x[6, :] = np.inf
    return x


def expected(x: np.ndarray, k: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Values and indices; what is not there is the worst value and -1."""
    worst = -np.inf if largest else np.inf
    y = np.where(np.isnan(x), worst, x).astype(np.float64)
    order = np.lexsort((np.broadcast_to(np.arange(x.shape[1]), x.shape), -y if largest else y), axis=1)[:, :k]
    v = np.take_along_axis(y, order, 1)
    return v, np.where(v == worst, -1, order)


@pytest.mark.parametrize(("k", "bn", "largest", "filtered"), [(5, 64, False, True), (8, 192, True, False)])
def test_a_list_keeps_the_best_of_a_row(tmp_path: Path, k: int, bn: int, largest: bool, filtered: bool) -> None:
    text, x = text_of(k, bn, largest, filtered), scores(70, 200)
    tensors = {"X": x, "V": np.zeros((70, k), np.float32), "I": np.zeros((70, k), np.int32)}
    passes(text)
    compiles(text, "sm_90a")
    got = simulated(text, tensors, {"M": 70, "N": 200}, ctas=2)
    agree(got, generated(text, tensors, {"M": 70, "N": 200}, tmp_path, clusters=2))
    filled = np.concatenate([x, np.full((70, 192), -1e30 if largest else 1e30, np.float32)], 1)[:, : -(-200 // bn) * bn]
    value, index = expected(filled, k, largest)
    assert (got["V"] == value).all()
    assert (got["I"] == index).all()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("            lst = lm.finish(lst)\n", "", "D007"),
        ("lst[i]", "lst[5]", "N022"),
        ("lm.topk(x, axis=1,", "lm.topk(lm.cast(x, lm.bf16), axis=1,", "D003"),
        ("lm.topk(x, axis=1,", "lm.topk(x, axis=0,", "N042"),
        ("shape=(64, 64), dtype=lm.f32, form=\"acc\")\n            lst", 'shape=(128, 64), dtype=lm.f32, form="acc")\n            lst', "D001"),
        ("k=5", "k=64", "N022"),
    ],
)
def test_a_wrong_list_is_refused(old: str, new: str, code: str) -> None:
    text = text_of(5, 64, False)
    assert old in text
    assert code in codes(text.replace(old, new, 1), "sm_90a")
