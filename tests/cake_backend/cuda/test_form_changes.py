"""Fragments of one warp through reductions, transpositions and changes of form, executed on the CPU."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from corpus import program
from emulate import COMPILER, run

from cake_backend.cuda.lower import lower

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")

HEAD = """
@cake.schedule(target="sm_90a")
def forms(lm, X: LM.gmem2d[LM.{dtype}], Y: LM.gmem2d[LM.f32], Z: LM.gmem2d[LM.f32]):
    lm.launch(grid="tiles")
    pool = lm.smem(65536)
    sx = pool.view(offset=0, shape=({rows}, {cols}), dtype=lm.{dtype}, swizzle="128b")
    sr = pool.view(offset=32768, shape=({warps}, {rows}), dtype=lm.f32)
    work = lm.role(warps=range(0, {warps}))
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            v = lm.load(X, coords=(0, 0), shape=({rows}, {cols}), form="vec")
            sx.store(v)
            lm.sync(cta)
"""


def launched(folder: Path, body: str, x: np.ndarray, dtype: str, y: tuple[int, int], z: tuple[int, int], warps: int = 1) -> dict[str, np.ndarray]:
    text = HEAD.format(dtype=dtype, rows=x.shape[0], cols=x.shape[1], warps=warps) + "".join(f"            {line}\n" for line in body.split("\n"))
    tensors = {"X": x, "Y": np.zeros(y, np.float32), "Z": np.zeros(z, np.float32)}
    return run(lower(program(text), source=text), tensors, {}, folder)


def bf16(rows: int, cols: int) -> np.ndarray:
    return np.random.default_rng(rows * cols).standard_normal((rows, cols)).astype(ml_dtypes.bfloat16)


def test_columns_and_rows_of_a_tile_are_reduced(tmp_path: Path) -> None:
    x = bf16(32, 64)
    body = """x = lm.cast(sx.load(form="acc"), lm.f32)
lm.store(Y, lm.reduce(x, "add", axis=0), coords=(0, 0))
lm.store(Z, lm.reduce(x, "max", axis=1), coords=(0, 0))"""
    out = launched(tmp_path, body, x, "bf16", (1, 64), (1, 32))
    assert np.allclose(out["Y"][0], x.astype(np.float64).sum(0), atol=1e-5)
    assert (out["Z"][0] == x.astype(np.float32).max(1)).all()


def test_rows_shared_by_warps_are_reduced_through_scratch(tmp_path: Path) -> None:
    x = bf16(64, 128)
    body = """m = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", warps=(2, 4))
x = lm.cast(sx.load(form="acc", like=m), lm.f32)
lm.store(Z, lm.reduce(x, "add", axis=1, across=work, scratch=sr, sync=cta), coords=(0, 0))"""
    out = launched(tmp_path, body, x, "bf16", (1, 1), (1, 64), warps=8)
    assert np.allclose(out["Z"][0], x.astype(np.float64).sum(1), atol=1e-5)


def test_an_accumulator_becomes_either_operand(tmp_path: Path) -> None:
    x = bf16(32, 64)
    body = """x = sx.load(form="acc")
a = sx.load(form="a")
y = lm.frag(shape=(32, 32), dtype=lm.f32, form="acc", init=0.0)
lm.mma(y, a, lm.cast(x, lm.bf16, form="b"))
lm.store(Y, y, coords=(0, 0))
z = lm.frag(shape=(32, 64), dtype=lm.f32, form="acc")
lm.mma(z, lm.cast(y * 0.125, lm.bf16, form="a"), lm.transpose(x), init=True)
lm.store(Z, z, coords=(0, 0))"""
    out = launched(tmp_path, body, x, "bf16", (32, 32), (32, 64))
    wide = x.astype(np.float64)
    assert np.allclose(out["Y"], wide @ wide.T, atol=1e-4)
    narrow = (out["Y"] * np.float32(0.125)).astype(ml_dtypes.bfloat16).astype(np.float64)
    assert np.allclose(out["Z"], narrow @ wide, atol=1e-4)


def test_an_accumulator_becomes_an_8_bit_operand_by_shuffles(tmp_path: Path) -> None:
    e4m3 = ml_dtypes.float8_e4m3fn
    x = np.random.default_rng(5).standard_normal((32, 128)).astype(e4m3)
    body = """b = sx.load(form="b")
y = lm.frag(shape=(32, 32), dtype=lm.f32, form="acc", init=0.0)
lm.mma(y, sx.load(form="a"), b)
lm.store(Y, y, coords=(0, 0))
z = lm.frag(shape=(32, 32), dtype=lm.f32, form="acc", init=0.0)
lm.mma(z, lm.cast(y * 0.05, lm.e4m3, form="a"), sx.cols(0, 32).load(form="b"))
lm.store(Z, z, coords=(0, 0))"""
    out = launched(tmp_path, body, x, "e4m3", (32, 32), (32, 32))
    wide = x.astype(np.float64)
    assert np.allclose(out["Y"], wide @ wide.T, atol=1e-4)
    narrow = (out["Y"] * np.float32(0.05)).astype(e4m3).astype(np.float64)
    assert np.allclose(out["Z"], narrow @ wide[:, :32].T, atol=1e-3)
