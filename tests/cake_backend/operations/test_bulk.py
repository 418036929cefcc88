"""Reductions by the copy engine, and bulk stores of the first rows."""

from pathlib import Path

import numpy as np
import pytest
from vertical import BF16, agree, codes, compiles, generated, passes, simulated

REDUCE = """
@cake.schedule(target="sm_90a")
def reduce(lm, X: LM.gmem3d[LM.{dtype}, "S", 64, 64], Y: LM.tma2d[LM.{dtype}, 60, 64], S: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(16384)
    tile = pool.view(offset=0, shape=(64, 64), dtype=lm.{dtype}, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(S,), names=("s",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, 0, t.s), shape=(64, 64), form="acc")
            lm.store_wait(pending=0)
            lm.sync(own)
            tile.store(x)
            lm.fence_proxy()
            lm.sync(own)
            tile.tma_reduce(Y, coords=(0, 0), op="{op}"{order})
        lm.store_wait(pending=0)
"""
NUMPY = {"f32": np.float32, "bf16": BF16}


@pytest.mark.parametrize(("dtype", "op"), [("f32", "add"), ("bf16", "max")])
def test_blocks_reduce_into_one_tensor(tmp_path: Path, dtype: str, op: str) -> None:
    text = REDUCE.format(dtype=dtype, op=op, order=', order="any"' if op == "add" else "")
    x = np.random.default_rng(0).integers(-9, 9, (5, 64, 64)).astype(NUMPY[dtype])
    tensors = {"X": x, "Y": np.ones((60, 64), NUMPY[dtype])}
    passes(text)
    assert f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}" in compiles(text)
    got = simulated(text, tensors, {"S": 5}, ctas=2, every=True)
    agree(got, generated(text, tensors, {"S": 5}, tmp_path, clusters=2))
    wide = x.astype(np.float64)[:, :60]
    assert (got["Y"].astype(np.float64) == (wide.sum(0) + 1 if op == "add" else np.maximum(wide.max(0), 1))).all()


@pytest.mark.parametrize(
    ("dtype", "op", "order", "code"),
    [("f32", "max", "", "D003"), ("f32", "mul", "", "N061"), ("f32", "add", "", "S017"), ("f32", "add", ', order="in"', "N061")],
)
def test_reductions_that_the_copy_engine_does_not_have_are_refused(dtype: str, op: str, order: str, code: str) -> None:
    assert codes(REDUCE.format(dtype=dtype, op=op, order=order)) == {code}


@pytest.mark.parametrize("line", ["            lm.store_wait(pending=0)\n", "            lm.fence_proxy()\n"])
def test_a_missing_wait_or_fence_around_a_reduction_is_found(line: str) -> None:
    text = REDUCE.format(dtype="f32", op="add", order=', order="any"')
    assert codes(text.replace(line, "", 1)) & {"S006", "S011"}


ROWS = """
@cake.schedule(target=("sm_90a", "sm_120a"))
def tails(lm, X: LM.gmem2d[LM.bf16, "T", 64], Y: LM.gmem2d[LM.bf16, "T", 64], OFFS: LM.gmem1d[LM.i32, "G1"], G: LM.i32, G1: LM.i32, T: LM.i32):
    lm.launch(grid="tiles")
    lm.assume(G1 == G + 1)
    pool = lm.smem(4096)
    tile = pool.view(offset=0, shape=(32, 64), dtype=lm.bf16)
    work = lm.role(warps=range(0, 4))
    own = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(G,), names=("g",))
    with work:
        for t in lm.tiles(sched):
            first, end = lm.ld(OFFS, t.g), lm.ld(OFFS, t.g + 1)
            for i in lm.range(lm.cdiv(end - first, 32)):
                x = lm.load(X, coords=(0, first + i * 32), shape=(32, 64), clip=True)
                lm.store_wait(pending=0)
                lm.sync(own)
                tile.store(x)
                lm.fence_proxy()
                lm.sync(own)
                tile.bulk_store(Y, coords=(0, first + i * 32), rows=end - first - i * 32)
        lm.store_wait(pending=0)
"""


def test_a_ragged_end_is_never_written_past(tmp_path: Path) -> None:
    offsets = np.array([0, 40, 40, 45, 100], np.int32)
    x = np.random.default_rng(1).standard_normal((100, 64)).astype(BF16)
    tensors = {"X": x, "Y": np.zeros_like(x), "OFFS": offsets}
    scalars = {"G": 4, "G1": 5, "T": 100}
    passes(ROWS)
    compiles(ROWS, "sm_90a")
    compiles(ROWS, "sm_120a")
    got = simulated(ROWS, tensors, scalars, every=True)
    agree(got, generated(ROWS, tensors, scalars, tmp_path))
    assert got["Y"].tobytes() == x.tobytes()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("coords=(0, first + i * 32), rows", "coords=(4, first + i * 32), rows", "H019"),
        ("coords=(0, first + i * 32), rows", "coords=(8, first + i * 32), rows", "S033"),
        ("                lm.fence_proxy()\n", "", "S006"),
        ("                lm.sync(own)\n                tile.bulk", "                tile.bulk", "S004"),
    ],
)
def test_a_wrong_bulk_store_is_found(old: str, new: str, code: str) -> None:
    assert ROWS.count(old) == 1
    assert code in codes(ROWS.replace(old, new))
