"""`lm.amax_scale`, reductions over rows of vectors, and quantising stores."""

from pathlib import Path

import numpy as np
import pytest
from vertical import BF16, E4M3, E5M2, UE8M0, agree, codes, compiles, generated, passes, simulated

ROWS = """
@cake.schedule(target=("sm_89", "sm_90a"))
def group_quant(lm, X: LM.gmem2d[LM.bf16, "M", 1024], Q: LM.gmem2d[LM.{dtype}, "M", 1024], S: LM.gmem2d[LM.{kind}, "M", 8], M: LM.i32):
    lm.launch(grid="persistent", ctas_per_sm=4)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(M,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.cast(lm.load(X, coords=(0, t.r), shape=(1024,), cache="stream"), lm.f32)
            s = lm.amax_scale(x, axis=1, block=128, kind="{kind}", dtype=lm.{dtype})
            lm.store(Q, lm.cast(x * lm.rcp(lm.cast(s, lm.f32)), lm.{dtype}), coords=(0, t.r))
            lm.store(S, s, coords=(0, t.r))
"""


def values(rows: int, cols: int = 1024) -> np.ndarray:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((rows, cols)) * np.exp2(rng.integers(-40, 40, (rows, cols // 128))).repeat(128, 1)
    x[0, :128] = 0
    x[1, 0:128] = 0
    x[1, 5] = 448  # a maximum on the boundary between two powers of two
    x[1, 128:256] = x[1, 128:256] * 0 + 1e-38
    return x.astype(BF16)


@pytest.mark.parametrize(("dtype", "kind"), [("e4m3", "f32"), ("e5m2", "ue8m0")])
def test_groups_of_a_row_get_a_scale_each(tmp_path: Path, dtype: str, kind: str) -> None:
    text, x = ROWS.format(dtype=dtype, kind=kind), values(3)
    narrow, scales = {"e4m3": E4M3, "e5m2": E5M2}[dtype], {"f32": np.float32, "ue8m0": UE8M0}[kind]
    tensors = {"X": x, "Q": np.zeros(x.shape, narrow), "S": np.zeros((3, 8), scales)}
    passes(text)
    got = simulated(text, tensors, {"M": 3}, ctas=2, every=True)
    agree(got, generated(text, tensors, {"M": 3}, tmp_path, clusters=2))
    amax = np.abs(x.astype(np.float64)).reshape(3, 8, 128).max(2)
    top = {"e4m3": 448.0, "e5m2": 57344.0}[dtype]
    s = got["S"].astype(np.float64)
    assert (s >= 2.0**-126).all()
    if kind == "f32":
        assert np.allclose(s, np.maximum(amax / top, 2.0**-126), rtol=2e-7)
    else:
        assert (s == np.exp2(np.ceil(np.log2(np.maximum(amax / top, 2.0**-126))))).all()
    back = got["Q"].astype(np.float64).reshape(3, 8, 128) * s[:, :, None]
    step = 2.0**-4 if dtype == "e4m3" else 2.0**-3
    error = np.abs(back - x.astype(np.float64).reshape(3, 8, 128))
    assert (error <= np.maximum(np.abs(x.astype(np.float64)).reshape(3, 8, 128) * step * 1.0001, s[:, :, None] * 2.0**-9)).all()
    assert np.abs(got["Q"].astype(np.float64)).reshape(3, 8, 128)[2].max(1).min() > top / 2.1


@pytest.mark.parametrize("target", ["sm_89", "sm_90a"])
def test_group_quantisation_compiles_to_packed_conversions(target: str) -> None:
    text = compiles(ROWS.format(dtype="e4m3", kind="f32"), target)
    assert "store_global_64" in text and "pack_e4m3" in text and "(lane & 15u) == 0" in text


TILE = """
@cake.schedule(target="sm_90a")
def tile_quant(lm, X: LM.gmem2d[LM.bf16, 64, 256], Q: LM.gmem2d[LM.e4m3, 64, 256], S: LM.gmem2d[LM.f32, 2, 64]):
    lm.launch(grid="tiles")
    pool = lm.smem(16384)
    q = pool.view(offset=0, shape=(64, 256), dtype=lm.e4m3, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.cast(lm.load(X, coords=(0, 0), shape=(64, 256), form="acc"), lm.f32)
            for g in lm.static_range(2):
                part = x.cols(128 * g, 128)
                s = lm.amax_scale(part, axis=1, block=128, kind="f32")
                q.cols(128 * g, 128).store(lm.cast(part * lm.rcp(s), lm.e4m3))
                lm.store(S, s, coords=(0, g))
            lm.sync(own)
            lm.store(Q, q.load(form="vec"), coords=(0, 0))
"""


def test_column_groups_of_an_accumulator_get_a_scale_a_row(tmp_path: Path) -> None:
    x = values(64, 256)
    tensors = {"X": x, "Q": np.zeros(x.shape, E4M3), "S": np.zeros((2, 64), np.float32)}
    passes(TILE)
    compiles(TILE)
    got = simulated(TILE, tensors, every=True)
    agree(got, generated(TILE, tensors, {}, tmp_path))
    amax = np.abs(x.astype(np.float64)).reshape(64, 2, 128).max(2)
    assert np.allclose(got["S"].T, np.maximum(amax / 448, 2.0**-126), rtol=2e-7)


DIRECT = """
@cake.schedule(target=("sm_89", "sm_90a"))
def tile_bytes(lm, X: LM.gmem2d[LM.bf16, "M", 256], Q: LM.gmem2d[LM.e4m3, "M", 256], R: LM.gmem2d[LM.e4m3, "M", 256], S: LM.gmem2d[LM.f32, 2, "M"], M: LM.i32):
    {assume}lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 64),), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.cast(lm.load(X, coords=(0, 64 * t.m), shape=(64, 256), form="acc"{clip}), lm.f32)
            for g in lm.static_range(2):
                part = x.cols(128 * g, 128)
                s = lm.amax_scale(part, axis=1, block=128, kind="f32")
                lm.store(Q, lm.cast(part * lm.rcp(s), lm.e4m3), coords=(128 * g, 64 * t.m){clip})
                lm.store(S, s, coords=(64 * t.m, g){clip})
            old = lm.load(R, coords=(0, 64 * t.m), shape=(64, 256), form="acc"{clip})
            lm.store(R, lm.cast(lm.cast(old, lm.f32) * 0.5, lm.e4m3), coords=(0, 64 * t.m){clip})
"""


@pytest.mark.parametrize(("clip", "rows"), [("", 64), (", clip=True", 51)])
def test_accumulators_of_bytes_in_global_memory(tmp_path: Path, clip: str, rows: int) -> None:
    text, x = DIRECT.format(clip=clip, assume="" if clip else "lm.assume(M % 64 == 0)\n    "), values(rows, 256)
    old = np.random.default_rng(4).integers(-100, 100, x.shape).astype(E4M3)
    passes(text)
    tensors = {"X": x, "Q": np.zeros(x.shape, E4M3), "R": old, "S": np.zeros((2, rows), np.float32)}
    for target in ("sm_89", "sm_90a"):
        compiles(text, target)
    got = simulated(text, tensors, {"M": rows}, every=True)
    agree(got, generated(text, tensors, {"M": rows}, tmp_path, clusters=1))
    assert got["R"].tobytes() == (old.astype(np.float32) * 0.5).astype(E4M3).tobytes()
    amax = np.abs(x.astype(np.float64)).reshape(rows, 2, 128).max(2)
    assert np.allclose(got["S"].T, np.maximum(amax / 448, 2.0**-126), rtol=2e-7)


REDUCED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def rows(lm, X: LM.gmem2d[LM.f32, 48, 32], Y: LM.gmem2d[LM.f32, 48, 32], Z: LM.gmem1d[LM.f32, 48], V: LM.gmem1d[LM.f32, 48]):
    lm.launch(grid="tiles")
    pool = lm.smem(8192)
    rows = pool.view(offset=0, shape=(48,), dtype=lm.f32)
    tile = pool.view(offset=1024, shape=(48, 32), dtype=lm.bf16)
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, 0), shape=(48, 32), form="vec")
            total = lm.reduce(x, "add", axis=1)
            part = lm.reduce(x, "max", axis=1, partial=True)
            top = lm.finish(part)
            rows.store(total)
            tile.store(lm.cast(x, lm.bf16))
            lm.sync(own)
            again = rows.load(form="rowvec", like=x)
            w = lm.load(V, coords=(0,), shape=(48,), form="rowvec", like=x)
            narrow = lm.cast(tile.load(form="vec", like=x), lm.f32)
            lm.store(Y, lm.where(x > top * 0.5, x - again, lm.fma(narrow, w, total)), coords=(0, 0))
            lm.store(Z, top, coords=(0,))
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_rows_of_a_vec_are_reduced_by_the_lanes_that_share_them(tmp_path: Path, target: str) -> None:
    rng = np.random.default_rng(1)
    x, v = rng.integers(-50, 50, (48, 32)).astype(np.float32), rng.integers(-4, 4, 48).astype(np.float32)
    tensors = {"X": x, "Y": np.zeros_like(x), "Z": np.zeros(48, np.float32), "V": v}
    passes(REDUCED)
    compiles(REDUCED, target)
    got = simulated(REDUCED, tensors, target=target, every=True)
    agree(got, generated(REDUCED, tensors, {}, tmp_path, target=target))
    total, top = x.sum(1, keepdims=True), x.max(1, keepdims=True)
    assert (got["Z"] == top[:, 0]).all()
    assert (got["Y"] == np.where(x > top * 0.5, x - total, x * v[:, None] + total)).all()


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (("block=128", "block=96"), "D026"),
        (("shape=(1024,)", "shape=(1000,)"), "D026"),
        (('kind="f32"', 'kind="f16"'), "N061"),
        (("dtype=lm.e4m3)", "dtype=lm.bf16)"), "N061"),
        (("lm.store(S, s,", "lm.store(S, lm.cast(s, lm.bf16),"), "D003"),
    ],
)
def test_scales_that_do_not_exist_are_refused(edit: tuple[str, str], code: str) -> None:
    text = ROWS.format(dtype="e4m3", kind="f32").replace(*edit)
    assert codes(text, "sm_90a") == {code}


def test_a_row_vector_of_an_accumulator_does_not_meet_a_vec() -> None:
    text = TILE.replace("lm.sync(own)", "lm.sync(own)\n            y = lm.cast(q.load(form=\"vec\"), lm.f32) * s")
    assert codes(text) == {"D002"}


SILU = """
@cake.schedule(target=("sm_89", "sm_90a"))
def silu_mul_quant(lm, X: LM.gmem3d[LM.bf16, "M", 2, "N"], Q: LM.gmem2d[LM.e4m3, "M", "N"], S: LM.gmem2d[LM.f32, "M", "G"], M: LM.i32, N: LM.i32, G: LM.i32, *, W=1024):
    lm.launch(grid="persistent", ctas_per_sm=8)
    lm.assume(N % 128 == 0 and N == 128 * G)
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(N, W), M), names=("c", "m"))
    with work:
        for t in lm.tiles(sched):
            gate = lm.cast(lm.load(X, coords=(t.c * W, 0, t.m), shape=(W,), cache="stream", clip=True), lm.f32)
            up = lm.cast(lm.load(X, coords=(t.c * W, 1, t.m), shape=(W,), cache="stream", clip=True), lm.f32)
            v = lm.silu(gate) * up
            s = lm.max(lm.amax_scale(v, axis=1, block=128), 1e-4 / 448.0)
            lm.store(Q, lm.cast(v * lm.rcp(s), lm.e4m3), coords=(t.c * W, t.m), clip=True)
            lm.store(S, s, coords=(t.c * (W // 128), t.m), clip=True)
"""

NORM = """
@cake.schedule(target=("sm_89", "sm_90a"))
def add_rmsnorm_quant(lm, X: LM.gmem2d[LM.bf16, "M", 2048], R: LM.gmem2d[LM.bf16, "M", 2048], W: LM.gmem1d[LM.bf16, 2048].const, Q: LM.gmem2d[LM.e4m3, "M", 2048],
                      S: LM.gmem2d[LM.f32, "M", 16], M: LM.i32, eps: LM.f32):
    lm.launch(grid="persistent", ctas_per_sm=4)
    pool = lm.smem(32)
    part = pool.view(offset=0, shape=(4,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="static", tiles=(M,), names=("r",))
    with work:
        w = lm.load(W, coords=(0,), shape=(2048,), cache="keep")
        for t in lm.tiles(sched):
            h = lm.cast(lm.load(X, coords=(0, t.r), shape=(2048,)), lm.f32) + lm.cast(lm.load(R, coords=(0, t.r), shape=(2048,)), lm.f32)
            lm.store(R, lm.cast(h, lm.bf16), coords=(0, t.r))
            s = lm.step(ring)
            total = lm.reduce(h * h, "add", across=work, scratch=part[s], sync=cta)
            y = h * lm.rsqrt(total * (1.0 / 2048) + eps) * lm.cast(w, lm.f32)
            scale = lm.amax_scale(y, axis=1, block=128)
            lm.store(Q, lm.cast(y * lm.rcp(scale), lm.e4m3), coords=(0, t.r))
            lm.store(S, scale, coords=(0, t.r))
"""


@pytest.mark.parametrize("which", ["silu", "norm"])
def test_fused_quantisation_of_rows(tmp_path: Path, which: str) -> None:
    rng = np.random.default_rng(0)
    if which == "silu":
        text, n = SILU, 1536  # the last tile of a row is half outside
        x = rng.standard_normal((3, 2, n)).astype(BF16)
        tensors, scalars = {"X": x, "Q": np.zeros((3, n), E4M3), "S": np.zeros((3, n // 128), np.float32)}, {"M": 3, "N": n, "G": n // 128}
        wide = x.astype(np.float64)
        v = wide[:, 0] / (1 + np.exp(-wide[:, 0])) * wide[:, 1]
    else:
        text, n = NORM, 2048
        x, r, w = (rng.standard_normal(s).astype(BF16) for s in ((3, n), (3, n), (n,)))
        tensors, scalars = {"X": x, "R": r, "W": w, "Q": np.zeros((3, n), E4M3), "S": np.zeros((3, 16), np.float32)}, {"M": 3, "eps": 1e-5}
        h = x.astype(np.float64) + r.astype(np.float64)
        v = h / np.sqrt((h * h).mean(1, keepdims=True) + 1e-5) * w.astype(np.float64)
    passes(text)
    compiles(text, "sm_90a")
    got = simulated(text, tensors, scalars, ctas=2)
    agree(got, generated(text, tensors, scalars, tmp_path, clusters=2))
    groups = v.reshape(3, -1, 128)
    assert np.allclose(got["S"], np.abs(groups).max(2) / 448, rtol=1e-5)
    back = got["Q"].astype(np.float64).reshape(groups.shape) * got["S"][:, :, None]
    assert (np.abs(back - groups) <= np.abs(groups) * 2.0**-4 * 1.001 + got["S"][:, :, None] * 2.0**-9).all()
