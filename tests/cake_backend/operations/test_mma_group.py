"""`with lm.mma_group():` makes several MMAs one asynchronous group, for every reading that counts groups."""

from pathlib import Path

import numpy as np
import pytest
from vertical import BF16, agree, codes, compiles, generated, passes, program, simulated

from cake_backend.cuda.lower import lower

TWO = """
@cake.schedule(target="sm_90a")
def two(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.gmem2d[LM.f32, "M", "N"], D: LM.gmem2d[LM.f32, "N", "M"], M: LM.i32, N: LM.i32, K: LM.i32):
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    pool = lm.smem(65536)
    a = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=16384, shape=(64, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 64)))
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 64)):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=full)
                b.tma_load(B, coords=(k * 64, t.n * 64), stage=s, barrier=full)
    with math:
        x = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        y = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(lm.cdiv(K, 64)):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                with lm.mma_group():
                    lm.mma(x, a[s], b[s], init=(k == 0))
                    lm.mma(y, b[s], a[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ring))
            lm.store(C, x, coords=(t.n * 64, t.m * 64), clip=True)
            lm.store(D, y, coords=(t.m * 64, t.n * 64), clip=True)
"""


def test_one_wait_counts_a_group_of_two_products_once(tmp_path: Path) -> None:
    m, n, k = 128, 128, 200
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, s).astype(BF16) for s in ((m, k), (n, k)))
    tensors = {"A": a, "B": b, "C": np.zeros((m, n), np.float32), "D": np.zeros((n, m), np.float32)}
    scalars = {"M": m, "N": n, "K": k}
    passes(TWO)
    text = compiles(TWO)
    # One fence for both: with a second one in between, the assembler ends a group there, and waits that count groups wait for too much.
    assert text.count("wgmma_commit();") == 1 and text.count("wgmma_fence();") == 1
    got = simulated(TWO, tensors, scalars, ctas=2, every=True)
    agree(got, generated(TWO, tensors, scalars, tmp_path, clusters=2))
    want = a.astype(np.float64) @ b.astype(np.float64).T
    assert (got["C"] == want).all() and (got["D"] == want.T).all()


def test_what_is_written_between_two_products_of_a_group_is_fenced() -> None:
    second = "                    lm.mma(y, b[s], a[s], init=(k == 0))\n"
    place = '        y = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")\n'
    assert TWO.count(second) == TWO.count(place) == 1
    text = TWO.replace(place, place.replace('form="acc"', 'form="acc", init=0.0')).replace("mma_wait(pending=1)", "mma_wait(pending=0)")
    text = text.replace(second, "                    y = y * 0.5\n" + second).replace("stage=s.prev())", "stage=s)").replace("                if k > 0:\n    ", "")
    text = text.replace("            lm.mma_wait(pending=0)\n            lm.arrive(empty, stage=lm.at(ring))\n", "")
    passes(text)
    assert lower(program(text), source=text).text.count("wgmma_fence();") == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stage=s.prev())", "stage=s)"),  # released while its own group reads it
        ("            lm.mma_wait(pending=0)\n", "            lm.mma_wait(pending=1)\n"),  # read while the last group writes it
    ],
)
def test_a_group_in_flight_is_respected(old: str, new: str) -> None:
    assert TWO.count(old) == 1
    assert codes(TWO.replace(old, new)) & {"S005", "S003", "S001", "S025", "S022"}


def test_without_the_group_the_same_wait_is_too_weak() -> None:
    text = TWO.replace("                with lm.mma_group():\n", "").replace("                    lm.mma(", "                lm.mma(")
    text = text.replace("pending=1", "pending=2")
    passes(text)
    assert codes(TWO.replace("pending=1", "pending=2"))
