"""`view.send`: CTAs of a cluster exchange partial sums through each other's shared memory."""

from pathlib import Path

import numpy as np
import pytest
from vertical import BF16, agree, codes, compiles, generated, passes, program, simulated

from cake_ir.derive.arrivals import arrivals
from cake_ir.derive.sends import send_barriers

SPLIT_K = """
@cake.schedule(target="sm_90a")
def split_k(lm, X: LM.gmem3d[LM.f32, 2, "M", 64], Y: LM.gmem2d[LM.f32, "M", 64], M: LM.i32):
    lm.launch(grid="persistent", cluster=(2, 1))
    pool = lm.smem(2 * 64 * 32 * 4)
    part = pool.view(offset=0, shape=(64, 32), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx", scope="cluster")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="warp", scope="cluster", primed=True)
    sched = lm.scheduler(kind="static", tiles=(2, lm.cdiv(M, 64)), names=("k", "m"), cluster=(2, 1))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.m * 64, t.k), shape=(64, 64), form="acc", clip=True)
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            for q in lm.static_range(2):
                if lm.cta_rank() != q:
                    part.send(x.cols(32 * q, 32), cta=q, barrier=full, stage=s)
            lm.wait(full, stage=s)
            other = part[s].load(form="acc")
            lm.arrive(empty, stage=s)
            for q in lm.static_range(2):
                if lm.cta_rank() == q:
                    lm.store(Y, x.cols(32 * q, 32) + other, coords=(32 * q, t.m * 64), clip=True)
"""


def test_halves_of_a_sum_meet_in_each_others_memory(tmp_path: Path) -> None:
    m = 300
    x = np.random.default_rng(0).integers(-9, 9, (2, m, 64)).astype(np.float32)
    tensors = {"X": x, "Y": np.zeros((m, 64), np.float32)}
    passes(SPLIT_K)
    text = compiles(SPLIT_K)
    assert "st.async.weak.shared::cluster" in text and text.count("mbarrier_expect_tx(full") == 2
    got = simulated(SPLIT_K, tensors, {"M": m}, ctas=4, every=True)
    agree(got, generated(SPLIT_K, tensors, {"M": m}, tmp_path, clusters=2))
    assert (got["Y"] == x.sum(0)).all()


def test_the_receiver_counts_one_arrival_and_the_bytes_of_the_view() -> None:
    p = program(SPLIT_K)
    assert arrivals(p)["full"].count == 1 and arrivals(p)["empty"].count == 8
    assert send_barriers(p)["full"].bytes == 64 * 32 * 4


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("            lm.wait(full, stage=s)\n", "", {"S004", "S025", "S027"}),
        ("            lm.wait(empty, stage=s)\n", "", {"S003"}),
        ("            lm.arrive(empty, stage=s)\n", "", {"S001", "S023", "S008"}),
        ("x.cols(32 * q, 32), cta", "lm.cast(x.cols(32 * q, 32), lm.bf16), cta", {"D003"}),
        ('cons=[work], arrive="tx", scope="cluster")', 'cons=[work], arrive="tx")', {"S012"}),
        ("cta=q,", "cta=q + 1,", {"S038"}),
        ("lm.cta_rank() != q:\n                    part.send", "lm.cta_rank() == 5:\n                    part.send", {"S008", "S023"}),
        ("            lm.wait(full, stage=s)\n", "            lm.wait(full, stage=s)\n            lm.wait(full, stage=s)\n", {"S038"}),
    ],
)
def test_a_wrong_exchange_is_found(old: str, new: str, found: set[str]) -> None:
    assert SPLIT_K.count(old) == 1
    assert codes(SPLIT_K.replace(old, new)) & found


FORMS = """
@cake.schedule(target="sm_90a")
def forms(lm, X: LM.gmem2d[LM.bf16, 64, 64], R: LM.gmem1d[LM.f32, 64], Y: LM.gmem2d[LM.bf16, 64, 64], V: LM.gmem2d[LM.bf16, 64, 64], Z: LM.gmem1d[LM.f32, 64]):
    lm.launch(grid="tiles", cluster=(2, 1))
    pool = lm.smem(65536)
    tile = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    flat = pool.view(offset=8192, shape=(64, 64), dtype=lm.bf16)
    row = pool.view(offset=16384, shape=(64,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx", scope="cluster")
    sched = lm.scheduler(kind="grid", tiles=(2,), names=("m",), cluster=(2, 1))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")
            v = lm.load(X, coords=(0, 0), shape=(64, 64))
            r = lm.load(R, coords=(0,), shape=(64,), form="rowvec", like=x)
            s = lm.step(ring)
            if lm.cta_rank() == 0:
                tile.send(x, cta=1, barrier=full, stage=s)
                flat.send(v, cta=1, barrier=full, stage=s)
                row.send(r, cta=1, barrier=full, stage=s)
            else:
                lm.wait(full, stage=s)
                lm.store(Y, tile.load(form="vec"), coords=(0, 0))
                lm.store(V, flat.load(form="acc"), coords=(0, 0))
                lm.store(Z, row.load(form="rowvec", like=x), coords=(0,))
"""


def test_every_form_can_be_sent(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, r = rng.standard_normal((64, 64)).astype(BF16), rng.standard_normal(64).astype(np.float32)
    tensors = {"X": x, "R": r, "Y": np.zeros_like(x), "V": np.zeros_like(x), "Z": np.zeros_like(r)}
    compiles(FORMS)
    got = simulated(FORMS, tensors, every=True)
    agree(got, generated(FORMS, tensors, {}, tmp_path))
    assert got["Y"].tobytes() == got["V"].tobytes() == x.tobytes() and (got["Z"] == r).all()
