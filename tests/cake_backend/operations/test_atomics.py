"""`lm.atomic`, and coordinates an element for loads, stores and updates."""

from pathlib import Path

import numpy as np
import pytest
from vertical import BF16, agree, codes, compiles, generated, passes, simulated

SPLIT = """
@cake.schedule(target=("sm_80", "sm_90a"))
def sums(lm, X: LM.gmem3d[LM.f32, "S", 40, 64], Y: LM.gmem2d[LM.{dtype}, 40, 64].zeroed, TOP: LM.gmem1d[LM.f32, 40], N: LM.gmem1d[LM.i32, 4].zeroed,
         R: LM.gmem1d[LM.{dtype}, 40].zeroed, S: LM.i32):
    lm.launch(grid="persistent", ctas_per_sm=2)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(S,), names=("s",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, 0, t.s), shape=(40, 64), form="vec")
            lm.atomic(Y, lm.cast(x, lm.{dtype}), coords=(0, 0), order="any")
            top = lm.reduce(x, "max", axis=1)
            lm.atomic(TOP, top, coords=(0,), op="max")
            lm.atomic(R, lm.cast(lm.reduce(x, "add", axis=1), lm.{dtype}), coords=(0,), order="any")
            lm.atomic(N, 1, coords=(2,))
            lm.atomic(N, t.s, coords=(3,), op="max")
"""
NUMPY = {"f32": np.float32, "bf16": BF16, "f16": np.float16}


@pytest.mark.parametrize(("dtype", "target"), [("f32", "sm_90a"), ("bf16", "sm_90a"), ("f32", "sm_80"), ("f16", "sm_80")])
def test_blocks_add_to_one_place(tmp_path: Path, dtype: str, target: str) -> None:
    text = SPLIT.format(dtype=dtype)
    if dtype == "bf16":
        text = text.replace('("sm_80", "sm_90a")', '"sm_90a"')
    x = np.random.default_rng(0).integers(-3, 4, (5, 40, 64)).astype(np.float32)
    x[1, 3] = -1.5
    tensors = {
        "X": x, "Y": np.zeros((40, 64), NUMPY[dtype]), "TOP": np.full(40, -2.0, np.float32), "N": np.zeros(4, np.int32), "R": np.zeros(40, NUMPY[dtype]),
    }  # fmt: skip
    passes(text)
    compiles(text, target)
    got = simulated(text, tensors, {"S": 5}, target=target, ctas=2, every=True)
    agree(got, generated(text, tensors, {"S": 5}, tmp_path, target=target, clusters=2))
    assert (got["Y"].astype(np.float64) == x.sum(0)).all()
    assert (got["TOP"] == np.maximum(x.max((0, 2)), -2)).all()
    assert (got["R"].astype(np.float64) == x.astype(np.float64).sum((0, 2))).all()
    assert got["N"].tolist() == [0, 0, 5, 4]


def test_neighbours_are_added_at_once_where_the_target_can() -> None:
    text = SPLIT.format(dtype="f32")
    assert "red_global_add_f32_v4_gpu" in compiles(text, "sm_90a")
    assert "red_global_add_f32_gpu" in compiles(text, "sm_80")
    wide = compiles(SPLIT.format(dtype="bf16").replace('("sm_80", "sm_90a")', '"sm_90a"'))
    assert "red_global_add_bf16x2_v2_gpu" in wide


TILES = """
@cake.schedule(target="sm_90a")
def tiles(lm, X: LM.gmem2d[LM.f32, 64, 32], ROW: LM.gmem1d[LM.i32, 64], Y: LM.gmem2d[LM.f32, 50, 32].zeroed, H: LM.gmem1d[LM.i32, 64], Z: LM.gmem2d[LM.bf16, 50, 32],
          C: LM.gmem1d[LM.u32, 32].zeroed, W: LM.gmem2d[LM.f32, 60, 32], V: LM.gmem2d[LM.f32, 64, 32]):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, 0), shape=(64, 32), form="acc")
            rows = lm.load(ROW, coords=(0,), shape=(64,), form="rowvec", like=x)
            lm.atomic(Y, x, coords=(0, rows + lm.cast(x * 0.0, lm.i32)), order="any", clip=True)
            lm.atomic(W, x, coords=(0, 3), op="min", mask=lm.in_bounds(x, rows=57, cols=31))
            v = lm.load(ROW, coords=(0,), shape=(64,))
            lm.atomic(H, v, coords=(v,), op="xor", clip=True)
            g = lm.load(Z, coords=(0, rows + lm.cast(x * 0.0, lm.i32)), shape=(64, 32), form="acc", clip=True)
            lm.store(V, lm.cast(g, lm.f32), coords=(0, 63 - lm.iota(x, axis=0) + lm.cast(x * 0.0, lm.i32)))
            count = lm.colvec(x, init=5, dtype=lm.u32)
            lm.atomic(C, count, coords=(0,), op="inc")
"""


def test_coordinates_an_element_gather_scatter_and_collide(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    x, rows = rng.integers(-9, 9, (64, 32)).astype(np.float32), rng.integers(0, 55, 64).astype(np.int32)
    w, z = rng.integers(-9, 9, (60, 32)).astype(np.float32), rng.standard_normal((50, 32)).astype(BF16)
    tensors = {"X": x, "ROW": rows, "Y": np.zeros((50, 32), np.float32), "H": np.arange(64, dtype=np.int32), "Z": z, "C": np.zeros(32, np.uint32), "W": w, "V": np.zeros((64, 32), np.float32)}
    passes(TILES)
    compiles(TILES)
    got = simulated(TILES, tensors)
    agree(got, generated(TILES, tensors, {}, tmp_path))
    y, xor, least = np.zeros((50, 32), np.float32), np.arange(64, dtype=np.int32), w.copy()
    for i, r in enumerate(rows):
        if r < 50:
            y[r] += x[i]
        xor[r] ^= r
    least[3:60, :31] = np.minimum(w[3:60, :31], x[:57, :31])
    assert (got["Y"] == y).all() and (got["H"] == xor).all() and (got["W"] == least).all()
    assert (got["V"][::-1] == np.where(rows[:, None] < 50, z[np.minimum(rows, 49)].astype(np.float32), 0)).all()
    assert (got["C"] == 1).all()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (', order="any")\n            top', ")\n            top", "S017"),
        ('op="max")\n            lm.atomic(R', 'op="and")\n            lm.atomic(R', "D003"),
        ("lm.atomic(N, 1, coords=(2,))", 'lm.atomic(N, 1, coords=(2,), op="swap")', "N061"),
        ("lm.atomic(N, 1, coords=(2,))", "lm.atomic(N, 1, coords=(2, 0))", "D011"),
        ("lm.atomic(N, 1, coords=(2,))", "lm.atomic(N, 1, coords=(7,))", "S033"),
        ("lm.atomic(N, 1, coords=(2,))", "lm.atomic(N, top, coords=(0,))", "D003"),
        ("lm.atomic(N, 1, coords=(2,))", 'lm.atomic(N, 1, coords=(2,), scope="warp")', "N061"),
    ],
)
def test_updates_that_memory_does_not_have_are_refused(old: str, new: str, code: str) -> None:
    text = SPLIT.format(dtype="f32")
    assert text.count(old) == 1
    assert codes(text.replace(old, new)) == {code}


def test_an_old_target_has_no_addition_of_bf16() -> None:
    assert codes(SPLIT.format(dtype="bf16"), "sm_80") == {"H022"}


HISTOGRAM = """
@cake.schedule(target=("sm_80", "sm_90a"))
def histogram(lm, X: LM.gmem2d[LM.i32, "R", 256], H: LM.gmem1d[LM.i32, 64].zeroed, F: LM.gmem1d[LM.f32, 64], R: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(512)
    bins = pool.view(offset=0, shape=(64,), dtype=lm.i32)
    top = pool.view(offset=256, shape=(64,), dtype=lm.f32)
    work = lm.role(warps=range(0, 8), members=2)
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(R, 2),), names=("r",))
    with work:
        if work.index == 0:
            bins.store(lm.frag(shape=(64,), dtype=lm.i32, form="vec", init=0))
            top.store(lm.frag(shape=(64,), dtype=lm.f32, form="vec", init=-100.0))
        lm.sync(cta)
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, 2 * t.r + work.index), shape=(256,), clip=True, fill=-1)
            bins.atomic(1, idx=x)
            top.atomic(lm.cast(x, lm.f32) * 0.5 - 4.0, idx=x, op="max")
        lm.sync(cta)
        if work.index == 0:
            lm.atomic(H, bins.load(form="vec"), coords=(0,))
            lm.atomic(F, top.load(form="vec"), coords=(0,), op="max")
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_histogram_in_shared_memory(tmp_path: Path, target: str) -> None:
    x = np.random.default_rng(0).integers(-4, 70, (5, 256)).astype(np.int32)
    tensors = {"X": x, "H": np.zeros(64, np.int32), "F": np.full(64, -200, np.float32)}
    passes(HISTOGRAM)
    compiles(HISTOGRAM, target)
    got = simulated(HISTOGRAM, tensors, {"R": 5}, target=target, ctas=2, every=target == "sm_90a")
    agree(got, generated(HISTOGRAM, tensors, {"R": 5}, tmp_path, target=target, clusters=2))
    counts = np.bincount(x[(x >= 0) & (x < 64)], minlength=64)
    assert (got["H"] == counts).all()
    assert (got["F"] == np.where(counts > 0, np.arange(64) * 0.5 - 4, -100)).all()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("        lm.sync(cta)\n        for t", "        for t", "S003"),  # zeroed by one member, updated by the other
        ("        lm.sync(cta)\n        if work.index == 0:\n            lm.atomic(H", "        if work.index == 0:\n            lm.atomic(H", "S004"),
        ("            bins.store(lm.frag(shape=(64,), dtype=lm.i32, form=\"vec\", init=0))\n", "", "S027"),
        ("bins.atomic(1, idx=x)", "bins.atomic(lm.cast(x, lm.f32), idx=x)", "D003"),
        ("bins.atomic(1, idx=x)", "bins.atomic(1, idx=lm.cast(x, lm.f32))", "D024"),
        ("shape=(64,), dtype=lm.i32)", "shape=(8, 8), dtype=lm.i32)", "D021"),
    ],
)
def test_a_wrong_histogram_is_found(old: str, new: str, code: str) -> None:
    assert HISTOGRAM.count(old) == 1
    assert code in codes(HISTOGRAM.replace(old, new))
