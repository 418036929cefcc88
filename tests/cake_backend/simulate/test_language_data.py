"""What the six examples do not use of data: bulk copies, vectors, shared rows, fp8 and arithmetic, each against NumPy under every adversary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sim_schedules import BF16, E4M3, close, everywhere, nan, normal, program

from cake_backend.simulate import simulate
from cake_ir import parse, specialise

BULK = """
@cake.schedule(target="sm_90a")
def copy(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32], OFFS: LM.gmem1d[LM.i32], N: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(2 * 1024)
    buf = pool.view(offset=0, shape=(256,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, 2))
    load = lm.role(warps=[2])
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="member", primed=True)
    with load:
        for i in lm.range(N):
            s = lm.step(ring)
            lo, hi = lm.ld(OFFS, i), lm.ld(OFFS, i + 1)
            lm.wait(empty, stage=s)
            buf.bulk_load(X, offset=lo, n=hi - lo, stage=s, barrier=full)
    with work:
        for i in lm.range(N):
            s = lm.step(ring)
            lo, hi = lm.ld(OFFS, i), lm.ld(OFFS, i + 1)
            lm.wait(full, stage=s)
            x = buf[s].load(form="vec")
            lm.arrive(empty, stage=s)
            lm.store(Y, x * 2.0, coords=(lo,), mask=lm.iota(x, axis=0) < hi - lo)
"""


def test_bulk_copies_of_run_time_length_agree_with_numpy() -> None:
    offsets = np.array([0, 256, 260, 400, 400, 512], np.int32)
    x = normal(1, 512, dtype=np.float32)
    r = everywhere(program(BULK), {"X": x, "Y": nan(512, dtype=np.float32), "OFFS": offsets}, {"N": 5}, ctas=1)
    assert np.array_equal(r.outputs["Y"], x * 2)


CP_ASYNC_BARRIER = """
@cake.schedule(target="sm_80")
def copy(lm, X: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16], M: LM.i32, N: LM.i32):
    lm.launch(grid="persistent")
    pool = lm.smem(3 * 32 * 64 * 2)
    buf = pool.view(offset=0, shape=(32, 64), dtype=lm.bf16, stage=3, swizzle="128b")
    load = lm.role(warps=range(0, 2))
    work = lm.role(warps=range(2, 6))
    ring = lm.pipeline(stages=3)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="cp_async")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="thread", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 32), lm.cdiv(N, 64)))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            buf.cp_async(X, coords=(t.n * 64, t.m * 32), stage=s)
            lm.arrive(full, stage=s)
    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            v = buf[s].load(form="vec")
            lm.arrive(empty, stage=s)
            lm.store(Y, v, coords=(t.n * 64, t.m * 32), clip=True)
"""


def test_cp_async_that_arrives_on_a_barrier_agrees_with_numpy() -> None:
    x = normal(1, 100, 136)
    r = everywhere(program(CP_ASYNC_BARRIER), {"X": x, "Y": nan(100, 136)}, {"M": 100, "N": 136}, ctas=2)
    assert np.array_equal(r.outputs["Y"].astype(float), x.astype(float))


TRANSPOSED = """
@cake.schedule(target="sm_90a")
def turn(lm, X: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16], R: LM.gmem1d[LM.f32], C: LM.gmem1d[LM.f32], S: LM.gmem1d[LM.f32]):
    lm.launch(grid="persistent")
    pool = lm.smem(64 * 64 * 2 + 64 * 4 + 64 * 4)
    tile = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    rows = pool.view(offset=64 * 64 * 2, shape=(64,), dtype=lm.f32)
    part = pool.view(offset=64 * 64 * 2 + 256, shape=(4,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(work)
    with work:
        x = lm.load(X, coords=(0, 0), shape=(64, 64), form="acc")
        tile.T.store(x)
        total = lm.reduce(lm.cast(x, lm.f32), "add", axis=1)
        rows.store(total)
        lm.sync(cta)
        lm.store(Y, tile.load(form="vec"), coords=(0, 0))
        lm.store(R, rows.load(form="rowvec"), coords=(0,))
        lm.store(C, rows.load(form="colvec"), coords=(0,))
        first = rows.ld(3)
        all = lm.reduce(lm.cast(tile.load(form="vec"), lm.f32), "max", across=work, scratch=part, sync=cta)
        lm.store(S, all, coords=(0,))
        lm.store(S, first, coords=(1,))
"""


def test_transposed_views_vectors_and_scalars_through_shared_memory_agree_with_numpy() -> None:
    x = normal(1, 64, 64)
    tensors = {"X": x, "Y": nan(64, 64), "R": nan(64, dtype=np.float32), "C": nan(64, dtype=np.float32), "S": nan(2, dtype=np.float32)}
    r = everywhere(program(TRANSPOSED), tensors, ctas=1)
    total = x.astype(float).sum(1)
    assert np.array_equal(r.outputs["Y"].astype(float), x.astype(float).T)
    assert close(r.outputs["R"], total, 1e-6) and np.array_equal(r.outputs["R"], r.outputs["C"])
    assert r.outputs["S"][0] == x.astype(float).max() and r.outputs["S"][1] == r.outputs["R"][3]


SPLIT_ROWS = """
@cake.schedule(target="sm_80")
def rows(lm, A: LM.gmem2d[LM.bf16], B: LM.gmem2d[LM.bf16], S: LM.gmem1d[LM.f32]):
    lm.launch(grid="persistent")
    pool = lm.smem(64 * 32 * 2 + 64 * 32 * 2 + 8 * 64 * 4)
    a = pool.view(offset=0, shape=(64, 32), dtype=lm.bf16, swizzle="64b")
    b = pool.view(offset=64 * 32 * 2, shape=(64, 32), dtype=lm.bf16, swizzle="64b")
    part = pool.view(offset=2 * 64 * 32 * 2, shape=(8, 64), dtype=lm.f32)
    work = lm.role(warps=range(0, 8))
    cta = lm.named_barrier(work)
    with work:
        acc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", warps=(2, 4), init=0.0)
        a.cp_async(A, coords=(0, 0))
        b.cp_async(B, coords=(0, 0))
        lm.cp_commit()
        lm.cp_wait(pending=0)
        lm.sync(cta)
        for k in lm.static_range(2):
            x = a.cols(16 * k, 16).ldmatrix(form="a", like=acc)
            y = b.cols(16 * k, 16).ldmatrix(form="b", like=acc)
            lm.mma(acc, x, y)
        s = lm.reduce(acc, "add", axis=1, across=work, scratch=part, sync=cta)
        lm.store(S, s, coords=(0,))
"""


def test_rows_summed_across_warps_that_share_them_agree_with_numpy() -> None:
    a, b = normal(1, 64, 32), normal(2, 64, 32)
    r = everywhere(program(SPLIT_ROWS), {"A": a, "B": b, "S": nan(64, dtype=np.float32)}, ctas=1)
    assert close(r.outputs["S"], (a.astype(float) @ b.astype(float).T).sum(1), 1e-5)


FP8 = """
@cake.schedule(target="sm_90a")
def gemm(lm, A: LM.tma2d[LM.e4m3], B: LM.tma2d[LM.e4m3], C: LM.tma2d[LM.e4m3]):
    lm.launch(grid="persistent")
    pool = lm.smem(64 * 128 + 128 * 128 + 64 * 128)
    a = pool.view(offset=0, shape=(64, 128), dtype=lm.e4m3, swizzle="128b")
    b = pool.view(offset=64 * 128, shape=(128, 128), dtype=lm.e4m3, swizzle="128b")
    c = pool.view(offset=64 * 128 + 128 * 128, shape=(64, 128), dtype=lm.e4m3, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx")
    cta = lm.named_barrier(work)
    with work:
        s = lm.step(ring)
        a.tma_load(A, coords=(0, 0), stage=s, barrier=full)
        b.tma_load(B, coords=(0, 0), stage=s, barrier=full)
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        lm.wait(full, stage=s)
        lm.mma(acc, a, b, init=True)
        lm.mma_wait(pending=0)
        c.store(lm.cast(acc, lm.e4m3))
        lm.fence_proxy()
        lm.sync(cta)
        c.tma_store(C, coords=(0, 0))
        lm.store_wait(pending=0)
"""


def test_fp8_operands_and_a_saturating_fp8_result_agree_with_numpy() -> None:
    a, b = (normal(1, 64, 128, dtype=np.float32) * 8).astype(E4M3), (normal(2, 128, 128, dtype=np.float32) * 8).astype(E4M3)
    r = everywhere(program(FP8), {"A": a, "B": b, "C": nan(64, 128, dtype=E4M3)}, ctas=1)
    want = np.clip(a.astype(float) @ b.astype(float).T, -448, 448)
    got = r.outputs["C"].astype(float)
    assert (np.abs(want) == 448).any()
    assert (np.abs(got - want) <= np.maximum(np.abs(want) / 16, 2.0**-10) + 1e-6).all()


def test_a_counter_hands_every_tile_to_one_cluster() -> None:
    text = CP_ASYNC_BARRIER.replace('kind="static"', 'kind="counter", counter=COUNTER').replace(
        "M: LM.i32,", "COUNTER: LM.gmem1d[LM.i32], M: LM.i32,"
    )
    x = normal(1, 100, 136)
    tensors = {"X": x, "Y": nan(100, 136), "COUNTER": np.zeros(1, np.int32)}
    r = everywhere(program(text), tensors, {"M": 100, "N": 136}, ctas=3)
    assert np.array_equal(r.outputs["Y"].astype(float), x.astype(float))


SOFTMAX = """
@cake.schedule(target="sm_90a")
def softmax(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], ROWS: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4), members=4)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(ROWS, 4),), names=("r",))
    with work:
        for t in lm.tiles(sched):
            row = t.r * 4 + work.index
            if row < ROWS:
                x = lm.load(X, coords=(0, row), shape=(200,), form="vec", clip=True, fill=0)
                x = lm.where(lm.iota(x, axis=0) < 200, x, -lm.inf)
                m = lm.reduce(x, "max")
                p = lm.exp2((x - m) * 1.4426950408889634)
                lm.store(Y, p / lm.reduce(p, "add"), coords=(0, row), clip=True)
"""


def test_one_warp_a_row_with_a_ragged_vector_agrees_with_numpy() -> None:
    x = normal(1, 9, 200, dtype=np.float32) * 4
    r = everywhere(program(SOFTMAX), {"X": x, "Y": nan(9, 200, dtype=np.float32)}, {"ROWS": 9}, ctas=2)
    e = np.exp(x.astype(float) - x.astype(float).max(1, keepdims=True))
    assert close(r.outputs["Y"], e / e.sum(1, keepdims=True), 1e-6)


def test_the_corpus_gemm_whose_one_thread_releases_a_slot_agrees_with_numpy() -> None:
    text = (Path(__file__).resolve().parents[3] / "cake_kernels" / "gemm" / "hopper.py").read_text("utf-8")
    found = specialise(parse(text, "hopper.py").schedule(None), {"BN": 64})
    assert found.program is not None
    a, b = normal(1, 300, 200), normal(2, 136, 200)
    r = everywhere(found.program, {"A": a, "B": b, "C": nan(300, 136)}, {"M": 300, "N": 136, "K": 200}, ctas=2)
    assert close(r.outputs["C"], a.astype(float) @ b.astype(float).T, 4e-3)


def test_bf16_stays_exact_where_nothing_rounds() -> None:
    x = normal(1, 100, 136)
    r = simulate(program(CP_ASYNC_BARRIER), {"X": x, "Y": np.zeros((100, 136), BF16)}, {"M": 100, "N": 136})
    assert r.ok and r.outputs["Y"].tobytes() == x.tobytes()


ROWS_OF_A_VEC = """
@cake.schedule(target="sm_90a")
def quantise(lm, X: LM.gmem2d[LM.f32], Q: LM.gmem2d[LM.e4m3], S: LM.gmem1d[LM.f32], T: LM.gmem1d[LM.f32]):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 2))
    with work:
        x = lm.load(X, coords=(0, 0), shape=(48, 32), form="vec")
        s = lm.amax_scale(x, axis=1, block=32, kind="KIND", dtype=lm.e4m3)
        lm.store(Q, lm.cast(x * lm.rcp(lm.cast(s, lm.f32)), lm.e4m3), coords=(0, 0))
        lm.store(S, lm.cast(s, lm.f32), coords=(0,))
        lm.store(T, lm.reduce(x, "add", axis=1), coords=(0,))
"""


@pytest.mark.parametrize("kind", ["f32", "ue8m0"])
def test_rows_of_a_vec_on_neighbouring_lanes_agree_with_numpy(kind: str) -> None:
    x = normal(1, 48, 32, dtype=np.float32) * np.exp2(np.arange(48) - 20).astype(np.float32)[:, None]
    x[5] = 0
    tensors = {"X": x, "Q": nan(48, 32, dtype=E4M3), "S": nan(48, dtype=np.float32), "T": nan(48, dtype=np.float32)}
    r = everywhere(program(ROWS_OF_A_VEC.replace("KIND", kind)), tensors, ctas=1)
    top = np.maximum(np.abs(x.astype(float)).max(1), 448 * 2.0**-126)
    want = top / 448 if kind == "f32" else 2 ** np.ceil(np.log2(top / 448))
    scale = r.outputs["S"].astype(float)
    assert np.allclose(scale, want, rtol=3e-7, atol=0)
    q = r.outputs["Q"].astype(float) * scale[:, None]
    assert (np.abs(q - x) <= np.abs(x) / 16 + scale[:, None] * 2.0**-9).all()
    assert np.allclose(r.outputs["T"], x.astype(float).sum(1), rtol=1e-5, atol=1e-5 * np.abs(x).sum(1).max())


QUOTIENTS = """
@cake.schedule(target="sm_90a")
def divide(lm, X: LM.gmem1d[LM.f32], Y: LM.gmem1d[LM.f32], E: LM.gmem1d[LM.f32], A: LM.gmem1d[LM.f32]):
    lm.launch(grid="persistent")
    work = lm.role(warps=[0])
    with work:
        x = lm.load(X, coords=(0,), shape=(128,), form="vec")
        y = lm.load(Y, coords=(0,), shape=(128,), form="vec")
        lm.store(E, lm.div(x, y), coords=(0,))
        lm.store(A, x / y, coords=(0,))
"""


def test_div_rounds_correctly_and_the_slash_multiplies_by_a_reciprocal() -> None:
    x, y = normal(1, 128, dtype=np.float32), normal(2, 128, dtype=np.float32)
    r = everywhere(program(QUOTIENTS), {"X": x, "Y": y, "E": nan(128, dtype=np.float32), "A": nan(128, dtype=np.float32)}, ctas=1)
    assert np.array_equal(r.outputs["E"], x / y)
    assert np.array_equal(r.outputs["A"], x * (np.float32(1) / y)) and not np.array_equal(r.outputs["A"], x / y)
