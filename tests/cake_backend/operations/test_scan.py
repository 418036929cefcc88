"""`lm.scan` along rows, columns and vectors, on both machines and against NumPy."""

from pathlib import Path

import numpy as np
import pytest
from vertical import agree, codes, compiles, generated, passes, simulated

TEXT = """
@cake.schedule(target=("sm_80", "sm_90a"))
def scans(lm, X: LM.gmem2d[LM.f32, 64, 32], N: LM.gmem1d[LM.i32, 300], A: LM.gmem2d[LM.f32, 64, 32], B: LM.gmem2d[LM.f32, 32, 32], C: LM.gmem2d[LM.f32, 64, 32],
          D: LM.gmem1d[LM.i32, 300], M: LM.gmem2d[LM.f32, 64, 32]):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 4))
    alone = lm.role(warps=range(4, 5))
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, 0), shape=(64, 32), form="acc")
            lm.store(A, lm.scan(x, "add", axis=1), coords=(0, 0))
            v = lm.load(X, coords=(0, 0), shape=(64, 32))
            lm.store(C, lm.scan(v * 2.0, "add", axis=1) + 1.0, coords=(0, 0))
            m = lm.scan(v, "max", axis=1)
            lm.store(M, m, coords=(0, 0))
    with alone:
        for t in lm.tiles(sched):
            y = lm.load(X, coords=(0, 32), shape=(32, 32), form="acc")
            y = lm.scan(y, "add", axis=0)
            lm.store(B, y, coords=(0, 0))
            n = lm.load(N, coords=(0,), shape=(300,))
            lm.store(D, lm.scan(n, "add", axis=0), coords=(0,))
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_prefixes_run_along_rows_columns_and_vectors(tmp_path: Path, target: str) -> None:
    rng = np.random.default_rng(0)
    x, n = rng.integers(-9, 9, (64, 32)).astype(np.float32), rng.integers(-100, 100, 300).astype(np.int32)
    tensors = {"X": x, "N": n, "A": np.zeros_like(x), "B": np.zeros((32, 32), np.float32), "C": np.zeros_like(x), "D": np.zeros_like(n), "M": np.zeros_like(x)}
    passes(TEXT)
    compiles(TEXT, target)
    got = simulated(TEXT, tensors, target=target)
    agree(got, generated(TEXT, tensors, {}, tmp_path, target=target))
    assert (got["A"] == x.cumsum(1)).all() and (got["B"] == x[32:].cumsum(0)).all()
    assert (got["C"] == 2 * x.cumsum(1) + 1).all() and (got["D"] == n.cumsum()).all()
    assert (got["M"] == np.maximum.accumulate(x, 1)).all()


def test_roundings_agree_bit_for_bit(tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((64, 32)).astype(np.float32)
    x[3, 4], x[5, 6] = np.nan, np.inf
    n = np.zeros(300, np.int32)
    tensors = {"X": x, "N": n, "A": np.zeros_like(x), "B": np.zeros((32, 32), np.float32), "C": np.zeros_like(x), "D": np.zeros_like(n), "M": np.zeros_like(x)}
    got, printed = simulated(TEXT, tensors), generated(TEXT, tensors, {}, tmp_path)
    for t in (got, printed):
        for name in ("A", "B", "C", "M"):
            t[name][np.isnan(t[name])] = np.nan  # which NaN does not matter
    agree(got, printed)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('lm.scan(x, "add", axis=1)', 'lm.scan(x, "add", axis=0)', "D002"),
        ('lm.scan(x, "add", axis=1)', 'lm.scan(x, "mul", axis=1)', "N041"),
        ('lm.scan(v, "max", axis=1)', 'lm.scan(v, "max", axis=0)', "D002"),
        ('lm.scan(x, "add", axis=1)', 'lm.cast(lm.scan(lm.cast(x, lm.bf16), "add", axis=1), lm.f32)', "D003"),
        ("alone = lm.role(warps=range(4, 5))", "alone = lm.role(warps=range(4, 6))", "D002"),
    ],
)
def test_a_scan_across_warps_is_refused(old: str, new: str, code: str) -> None:
    assert TEXT.count(old) == 1
    assert codes(TEXT.replace(old, new)) == {code}
