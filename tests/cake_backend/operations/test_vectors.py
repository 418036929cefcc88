"""Row and column vectors of narrow types through memory: biases in bf16, scales in fp8 and ue8m0, flags in bytes."""

from pathlib import Path

import numpy as np
import pytest
from vertical import BF16, E4M3, UE8M0, agree, compiles, generated, passes, simulated

TEXT = """
@cake.schedule(target=("sm_89", "sm_90a"))
def vectors(lm, X: LM.gmem2d[LM.f32, 64, 64], BIAS: LM.gmem1d[LM.bf16, 60], ROWS: LM.gmem1d[LM.f16, 64], SCALE: LM.gmem1d[LM.ue8m0, 64], W: LM.gmem1d[LM.e4m3, 64],
            Y: LM.gmem2d[LM.f32, 64, 64], OUT: LM.gmem1d[LM.bf16, 64], COL: LM.gmem1d[LM.bf16, 64], B: LM.gmem1d[LM.i8, 64], Z: LM.gmem1d[LM.bf16, 2], a: LM.f32):
    lm.launch(grid="tiles")
    pool = lm.smem(4096)
    rows = pool.view(offset=0, shape=(64,), dtype=lm.bf16)
    cols = pool.view(offset=128, shape=(64,), dtype=lm.bf16)
    bytes = pool.view(offset=256, shape=(64,), dtype=lm.i8)
    column = pool.view(offset=320, shape=(64, 1), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")
            bias = lm.load(BIAS, coords=(0,), shape=(64,), form="colvec", like=x, clip=True, fill=2)
            r = lm.load(ROWS, coords=(0,), shape=(64,), form="rowvec", like=x)
            scale = lm.cast(lm.load(SCALE, coords=(0,), shape=(64,), form="rowvec", like=x), lm.f32)
            w = lm.cast(lm.load(W, coords=(0,), shape=(64,), form="colvec", like=x), lm.f32)
            y = (x + bias) * scale + lm.cast(r, lm.f32) * w
            top = lm.reduce(y, "max", axis=1)
            rows.store(lm.cast(top, lm.bf16))
            cols.store(lm.cast(w, lm.bf16))
            bytes.store(lm.cast(lm.min(lm.max(top, -100.0), 100.0), lm.i8))
            column.store(top)
            lm.sync(own)
            back = lm.cast(rows.load(form="rowvec", like=x), lm.f32) + lm.cast(lm.cast(bytes.load(form="rowvec", like=x), lm.i32), lm.f32)
            back = back + column.load(form="rowvec", like=x)
            lm.store(Y, y + back, coords=(0, 0))
            lm.store(OUT, lm.cast(back, lm.bf16), coords=(0,))
            lm.store(COL, cols.load(form="colvec", like=x), coords=(0,))
            lm.store(B, lm.cast(lm.min(lm.max(top, -100.0), 100.0), lm.i8), coords=(0,))
            lm.store(Z, a, coords=(0,))
            lm.store(Z, lm.cast(rows.ld(3), lm.f32), coords=(1,))
"""


@pytest.mark.parametrize("target", ["sm_89", "sm_90a"])
def test_vectors_of_narrow_types_keep_their_values(tmp_path: Path, target: str) -> None:
    rng = np.random.default_rng(0)
    x, rows = rng.integers(-9, 9, (64, 64)).astype(np.float32), rng.integers(-9, 9, 64).astype(np.float16)
    bias, w = rng.integers(-9, 9, 60).astype(BF16), rng.integers(-4, 4, 64).astype(E4M3)
    scale = np.exp2(rng.integers(-2, 3, 64)).astype(UE8M0)
    tensors = {
        "X": x, "BIAS": bias, "ROWS": rows, "SCALE": scale, "W": w, "Y": np.zeros_like(x), "OUT": np.zeros(64, BF16), "COL": np.zeros(64, BF16),
        "B": np.zeros(64, np.int8), "Z": np.zeros(2, BF16),
    }  # fmt: skip
    scalars = {"a": 0.3}
    passes(TEXT)
    compiles(TEXT, target)
    got = simulated(TEXT, tensors, scalars, target=target)
    agree(got, generated(TEXT, tensors, scalars, tmp_path, target=target))
    wide = np.concatenate([bias.astype(np.float32), np.full(4, 2, np.float32)])
    y = (x + wide) * scale.astype(np.float32)[:, None] + rows.astype(np.float32)[:, None] * w.astype(np.float32)
    top = y.max(1)
    small = np.rint(np.clip(top, -100, 100)).astype(np.int8)
    back = top.astype(BF16).astype(np.float32) + small + top
    assert (got["B"] == small).all() and (got["COL"] == w.astype(BF16)).all()
    assert (got["OUT"] == back.astype(BF16)).all() and (got["Y"] == y + back[:, None]).all()
    assert got["Z"][0] == np.float32(0.3).astype(BF16) and got["Z"][1] == top[3].astype(BF16)


RAGGED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def ragged(lm, X: LM.gmem2d[LM.f32, 24, 32], V: LM.gmem1d[LM.f32, 24], Y: LM.gmem2d[LM.f32, 24, 32]):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, 0), shape=(24, 32))
            v = lm.load(V, coords=(0,), shape=(24,), form="rowvec", like=x)
            lm.store(Y, x * v, coords=(0, 0))
"""


def test_a_row_vector_of_a_ragged_vec_reads_no_row_that_is_not_there(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal((24, 32)).astype(np.float32), rng.standard_normal(24).astype(np.float32)
    tensors = {"X": x, "V": v, "Y": np.zeros_like(x)}
    passes(RAGGED)
    assert "< 192" in compiles(RAGGED, "sm_80")
    got = simulated(RAGGED, tensors, target="sm_80")
    agree(got, generated(RAGGED, tensors, {}, tmp_path, target="sm_80"))
    assert (got["Y"] == x * v[:, None]).all()


PARTIAL = """
@cake.schedule(target=("sm_80", "sm_90a"))
def partial(lm, X: LM.gmem2d[LM.f32, "R", 256], Y: LM.gmem1d[LM.f32, "R"], R: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(R, 4),), names=("r",))
    with work:
        for t in lm.tiles(sched):
            row = 4 * t.r + work.index
            if row < R:
                x = lm.load(X, coords=(0, row), shape=(256,))
                p = lm.reduce(x, "add", partial=True) * 2.0
                lm.store(Y, lm.finish(p), coords=(row,))
"""


def test_a_partial_sum_of_a_vec_is_finished_over_the_warp(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5, 256)).astype(np.float32)
    tensors = {"X": x, "Y": np.zeros(5, np.float32)}
    passes(PARTIAL)
    compiles(PARTIAL, "sm_90a")
    got = simulated(PARTIAL, tensors, {"R": 5}, ctas=2)
    agree(got, generated(PARTIAL, tensors, {"R": 5}, tmp_path, clusters=2))
    assert (got["Y"] == 2 * x.sum(1)).all()


COLUMNS = """
@cake.schedule(target=("sm_80", "sm_90a"))
def columns(lm, X: LM.gmem2d[LM.f32, 64, 32], Y: LM.gmem1d[LM.f32, 32], Z: LM.gmem1d[LM.f32, 32]):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            total = lm.colvec(lm.frag(shape=(32, 32), dtype=lm.f32, form="acc"), init=0.0)
            for i in lm.range(2):
                x = lm.load(X, coords=(0, 32 * i), shape=(32, 32), form="acc")
                total = total + lm.reduce(x, "add", axis=0, partial=True)
                lm.store(Z, lm.reduce(x, "max", axis=0), coords=(0,))
            lm.store(Y, lm.finish(total), coords=(0,))
"""


def test_a_partial_sum_of_columns_is_finished_over_their_lanes(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (64, 32)).astype(np.float32)
    tensors = {"X": x, "Y": np.zeros(32, np.float32), "Z": np.zeros(32, np.float32)}
    passes(COLUMNS)
    compiles(COLUMNS, "sm_90a")
    got = simulated(COLUMNS, tensors)
    agree(got, generated(COLUMNS, tensors, {}, tmp_path))
    assert (got["Y"] == x.sum(0)).all() and (got["Z"] == x[32:].max(0)).all()
