"""Rows gathered by number with cp.async, whichever way the numbers are held; masked copies."""

from pathlib import Path

import numpy as np
import pytest
from vertical import BF16, agree, codes, compiles, generated, passes, simulated

HEAD = """
@cake.schedule(target=("sm_80", "sm_90a"))
def gather(lm, X: LM.gmem2d[LM.bf16, "V", 96], IDX: LM.gmem1d[LM.i32, 64], Y: LM.gmem2d[LM.bf16, 64, 64], V: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(16384)
    tile = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=1, swizzle="128b")
    list = pool.view(offset=8192, shape=(64,), dtype=lm.i32)
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
{numbers}
            tile.cp_async_rows(X, rows=rows, coords=(48, 0))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(cta)
            lm.store(Y, tile.load(form="vec"), coords=(0, 0))
"""
NUMBERS = {
    "acc": """            acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
            rows = lm.load(IDX, coords=(0,), shape=(64,), form="rowvec", like=acc)""",
    "vec": """            model = lm.frag(shape=(64, 64), dtype=lm.bf16, form="vec")
            rows = lm.load(IDX, coords=(0,), shape=(64,), form="rowvec", like=model)""",
    "view": """            list.store(lm.load(IDX, coords=(0,), shape=(64,)))
            lm.sync(cta)
            rows = list""",
}


def text_of(held: str) -> str:
    text = HEAD.format(numbers=NUMBERS[held])
    if held != "view":
        text = text.replace("    list = pool.view(offset=8192, shape=(64,), dtype=lm.i32)\n", "")
    return text


@pytest.mark.parametrize(("held", "target"), [("acc", "sm_90a"), ("vec", "sm_80"), ("view", "sm_90a")])
def test_rows_come_by_number(tmp_path: Path, held: str, target: str) -> None:
    text, rng = text_of(held), np.random.default_rng(0)
    x, idx = rng.standard_normal((40, 96)).astype(BF16), rng.integers(-3, 45, 64).astype(np.int32)
    tensors = {"X": x, "IDX": idx, "Y": np.full((64, 64), 7, BF16)}
    passes(text)
    compiles(text, target)
    got = simulated(text, tensors, {"V": 40}, target=target, every=True)
    agree(got, generated(text, tensors, {"V": 40}, tmp_path, target=target))
    want = np.zeros((64, 64), np.float32)
    ok = (idx >= 0) & (idx < 40)
    want[ok, :48] = x[idx[ok], 48:].astype(np.float32)
    assert (got["Y"].astype(np.float32) == want).all()


@pytest.mark.parametrize(
    ("held", "old", "new", "code"),
    [
        ("acc", "            lm.cp_wait(pending=0)\n", "", "S004"),
        ("view", "            lm.sync(cta)\n            rows", "            rows", "S004"),
        ("vec", "shape=(64, 64), dtype=lm.bf16, form=\"vec\"", 'shape=(64, 64), dtype=lm.f32, form="vec"', "D002"),
        ("acc", 'shape=(64, 64), dtype=lm.f32, form="acc"', 'shape=(128, 64), dtype=lm.f32, form="acc"', "D001"),
        ("acc", "coords=(48, 0)", "coords=(48,)", "D011"),
    ],
)
def test_a_wrong_gather_is_found(held: str, old: str, new: str, code: str) -> None:
    text = text_of(held)
    assert old in text
    assert code in codes(text.replace(old, new, 1).replace("shape=(64,), form=\"rowvec\"", 'shape=(128,), form="rowvec"') if code == "D001" else text.replace(old, new, 1))


MASKED = """
@cake.schedule(target=("sm_80", "sm_90a"))
def masked(lm, X: LM.gmem2d[LM.f32, 64, 32], Y: LM.gmem2d[LM.f32, 64, 32], n: LM.i32):
    lm.launch(grid="tiles")
    pool = lm.smem(8192)
    tile = pool.view(offset=0, shape=(64, 32), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("m",))
    with work:
        for t in lm.tiles(sched):
            like = lm.frag(shape=(64, 32), dtype=lm.f32, form="vec")
            tile.cp_async(X, coords=(0, 0), mask=lm.in_bounds(like, rows=n, cols=16))
            lm.cp_commit()
            lm.cp_wait(pending=0)
            lm.sync(cta)
            lm.store(Y, tile.load(form="vec"), coords=(0, 0))
"""


def test_a_mask_leaves_zeros(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    tensors = {"X": x, "Y": np.ones_like(x)}
    passes(MASKED)
    compiles(MASKED, "sm_80")
    got = simulated(MASKED, tensors, {"n": 37}, target="sm_80")
    agree(got, generated(MASKED, tensors, {"n": 37}, tmp_path, target="sm_80"))
    want = x.copy()
    want[37:], want[:, 16:] = 0, 0
    assert (got["Y"] == want).all()
