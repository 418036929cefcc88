"""Plans that pass data through workspaces in global memory: between launches, between the CTAs of a cluster, and as a counter of tiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cake_backend.task import Distribution, Scalar, Shape, Task, Tensor, Tolerance, numpy_dtype

# The split CTAs copy their sums to the workspace by TMA; a second launch reads them by vector loads and adds them up.
SPLIT_K = '''
@cake.schedule(target="sm_90a")
def partial_products(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], P: LM.tma3d[LM.f32, "PARTS", "M", "N"],
                     M: LM.i32, N: LM.i32, K: LM.i32, PARTS: LM.i32, *, SPLIT=3, BN=32, BK=64, STAGES=3):
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 4 == 0 and PARTS == SPLIT)
    a_bytes, b_bytes = STAGES * 64 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 64 * BN * 4)
    sa = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out = pool.view(offset=a_bytes + b_bytes, shape=(64, BN), dtype=lm.f32, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(load)
    done = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(M, 64), lm.cdiv(N, BN)), names=("p", "m", "n"))
    share = lm.cdiv(lm.cdiv(K, BK), SPLIT)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                lm.sync(own)
                sa.tma_load(A, coords=((t.p * share + k) * BK, t.m * 64), stage=s, barrier=full)
                sb.tma_load(B, coords=((t.p * share + k) * BK, t.n * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(share):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s], sb[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            out.store(acc)
            lm.fence_proxy()
            lm.sync(done)
            out.tma_store(P, coords=(t.n * BN, t.m * 64, t.p))
        lm.store_wait(pending=0)

@cake.schedule(target="sm_90a")
def add_up(lm, P: LM.gmem3d[LM.f32, "PARTS", "M", "N"], C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, PARTS: LM.i32, *, SPLIT=3, COLS=128):
    lm.launch(grid="tiles")
    lm.assume(N % 4 == 0 and PARTS == SPLIT)
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(M, lm.cdiv(N, COLS)), names=("m", "n"))
    with work:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(COLS,), dtype=lm.f32, form="vec", init=0.0)
            for p in lm.range(PARTS):
                total = total + lm.load(P, coords=(t.n * COLS, t.m, p), shape=(COLS,), clip=True)
            lm.store(C, lm.cast(total, lm.bf16), coords=(t.n * COLS, t.m), clip=True)

@cake.plan()
def product(lm, A: LM.gmem2d[LM.bf16], B: LM.gmem2d[LM.bf16], C: LM.gmem2d[LM.bf16], M: LM.i32, N: LM.i32, K: LM.i32, *, SPLIT=3):
    parts = lm.workspace(shape=(SPLIT, M, N), dtype=lm.f32)
    lm.run(partial_products, A=A, B=B, P=parts, M=M, N=N, K=K, PARTS=SPLIT, SPLIT=SPLIT)
    lm.run(add_up, P=parts, C=C, M=M, N=N, PARTS=SPLIT, SPLIT=SPLIT)
'''

# The CTAs of a cluster share K, write their sums to the workspace, meet, and the first adds up what the others wrote: one launch.
CLUSTER = '''
@cake.schedule(target="sm_90a")
def partial_products(lm, X: LM.tma2d[LM.bf16, "M", "K"], W: LM.tma2d[LM.bf16, "N", "K"].const, Y: LM.gmem2d[LM.bf16, "M", "N"], P: LM.gmem3d[LM.f32, "PARTS", 16, "BN"],
                     M: LM.i32, N: LM.i32, K: LM.i32, PARTS: LM.i32, *, SPLIT=8, BN=8, WARPS=4, STAGES=4, CTAS=1):
    """Y[M,N] = X[M,K] @ W[N,K].T; CTA t.k of a cluster takes the kt slots from t.k * kt on, P holds what each one found."""
    lm.launch(grid="tiles", cluster=(SPLIT, 1), ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(M <= 16 and K % 8 == 0 and N % 8 == 0 and PARTS == SPLIT * lm.cdiv(N, BN))

    BK = 64 * WARPS
    x_bytes, w_bytes = STAGES * 16 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(x_bytes + w_bytes + WARPS * 16 * BN * 4)
    xs = pool.view(offset=0, shape=(16, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    ws = pool.view(offset=x_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    partial = pool.view(offset=x_bytes + w_bytes, shape=(16, BN), dtype=lm.f32, stage=WARPS)

    math = lm.role(warps=range(0, WARPS), members=WARPS)
    load = lm.role(warps=range(WARPS, WARPS + 1))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sums = lm.named_barrier(math)
    own = lm.named_barrier(load)
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(N, BN)), names=("k", "n"), cluster=(SPLIT, 1))
    kt = lm.cdiv(K, BK * SPLIT)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                lm.sync(own)
                ws.tma_load(W, coords=((t.k * kt + k) * BK, t.n * BN), stage=s, barrier=full, cache="stream")
                xs.tma_load(X, coords=((t.k * kt + k) * BK, 0), stage=s, barrier=full, cache="keep")
            lm.cluster_sync()

    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(16, BN), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                for kk in lm.static_range(4):
                    a = xs[s].cols(64 * math.index + 16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = ws[s].cols(64 * math.index + 16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                lm.arrive(empty, stage=s)
            partial[math.index].store(acc)
            lm.sync(sums)
            if math.index == 0:
                for i in lm.static_range(1, WARPS):
                    acc = acc + partial[i].load(form="acc", like=acc)
                if t.k > 0:
                    lm.store(P, acc, coords=(0, 0, t.n * SPLIT + t.k))
            lm.cluster_sync()
            if math.index == 0 and t.k == 0:
                for i in lm.static_range(1, SPLIT):
                    acc = acc + lm.load(P, coords=(0, 0, t.n * SPLIT + i), shape=(16, BN), form="acc")
                lm.store(Y, lm.cast(acc, lm.bf16), coords=(t.n * BN, 0), clip=True)


@cake.plan()
def product(lm, X: LM.gmem2d[LM.bf16], W: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16], M: LM.i32, N: LM.i32, K: LM.i32,
              *, SPLIT=8, BN=8, WARPS=4, STAGES=4, CTAS=1):
    parts = SPLIT * lm.cdiv(N, BN)
    found = lm.workspace(shape=(parts, 16, BN), dtype=lm.f32)
    lm.run(partial_products, X=X, W=W, Y=Y, P=found, M=M, N=N, K=K, PARTS=parts, SPLIT=SPLIT, BN=BN, WARPS=WARPS, STAGES=STAGES, CTAS=CTAS)
'''

SOFTMAX = '''
@cake.schedule(target="sm_90a")
def statistics(lm, X: LM.gmem2d[LM.f32, "R", 1024], TOP: LM.gmem2d[LM.f32, "R", 32], SUM: LM.gmem2d[LM.f32, "R", 32], R: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(1024,), form="vec")
            top = lm.reduce(x, "max")
            each = lm.frag(shape=(32,), dtype=lm.f32, form="vec", init=0.0)
            lm.store(TOP, each + top, coords=(0, t.r))
            lm.store(SUM, each + lm.reduce(lm.exp2((x - top) * 1.4426950408889634), "add"), coords=(0, t.r))

@cake.schedule(target="sm_90a")
def normalise(lm, X: LM.gmem2d[LM.f32, "R", 1024], TOP: LM.gmem2d[LM.f32, "R", 32], SUM: LM.gmem2d[LM.f32, "R", 32], Y: LM.gmem2d[LM.f32, "R", 1024], R: LM.i32):
    lm.launch(grid="tiles")
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="grid", tiles=(R,), names=("r",))
    with work:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            top = lm.reduce(lm.load(TOP, coords=(0, t.r), shape=(32,)), "max")
            total = lm.reduce(lm.load(SUM, coords=(0, t.r), shape=(32,)), "max")
            x = lm.load(X, coords=(0, t.r), shape=(1024,), form="vec")
            lm.store(Y, lm.exp2((x - top) * 1.4426950408889634) * lm.rcp(total), coords=(0, t.r))

@cake.plan()
def softmax(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], R: LM.i32):
    top = lm.workspace(shape=(R, 32), dtype=lm.f32)
    total = lm.workspace(shape=(R, 32), dtype=lm.f32)
    lm.run(statistics, X=X, TOP=top, SUM=total, R=R)
    lm.run(normalise, X=X, TOP=top, SUM=total, Y=Y, R=R, after="pdl")
'''

COUNTER = '''
@cake.schedule(target="sm_90a")
def drawn(lm, X: LM.gmem2d[LM.f32, "R", 1024], Y: LM.gmem2d[LM.f32, "R", 1024], NEXT: LM.gmem1d[LM.i32].zeroed, R: LM.i32):
    lm.launch(grid="persistent")
    work = lm.role(warps=range(0, 4))
    sched = lm.scheduler(kind="counter", tiles=(R,), names=("r",), counter=NEXT)
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(0, t.r), shape=(1024,), form="vec")
            lm.store(Y, x + x, coords=(0, t.r))

@cake.plan()
def doubled(lm, X: LM.gmem2d[LM.f32], Y: LM.gmem2d[LM.f32], R: LM.i32):
    count = lm.workspace(shape=(1,), dtype=lm.i32)
    lm.zero(count)
    lm.run(drawn, X=X, Y=Y, NEXT=count, R=R)
'''


def _product(inputs: Any, axes: Any, rows: Any) -> dict[str, Any]:
    a = (inputs["A"] if rows is None else inputs["A"][rows]).astype(np.float64)
    return {"C": a @ inputs["B"].astype(np.float64).T}


def _small(rng: Any, *shape: int) -> Any:
    return rng.integers(-2, 3, shape).astype(np.float32).astype(numpy_dtype("bf16"))


def _softmax(inputs: Any, axes: Any, rows: Any) -> dict[str, Any]:
    x = (inputs["X"] if rows is None else inputs["X"][rows]).astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    return {"Y": e / e.sum(1, keepdims=True)}


def _product_task(small: dict[str, int], bench: dict[str, int]) -> Task:
    return Task(
        name="product", doc="C = A B^T in bf16, sums in f32", axes=("M", "N", "K"),
        tensors={"A": Tensor(("M", "K"), "bf16"), "B": Tensor(("N", "K"), "bf16"), "C": Tensor(("M", "N"), "bf16", "out")},
        scalars={n: Scalar("i32", n) for n in "MNK"}, shapes=(Shape("small", small, "sim"), Shape("large", bench, "bench")),
        distributions=(Distribution("integers", lambda rng, a: {"A": _small(rng, a["M"], a["K"]), "B": _small(rng, a["N"], a["K"])}),),
        tolerances={"C": Tolerance(reason="sums of small integers are exact in f32, then rounded once", rtol=4e-3, atol=1e-3)},
        oracle=_product, flops="2 * M * N * K", unit="bf16",
    )  # fmt: skip


def _rows_of_few(small: dict[str, int], bench: dict[str, int]) -> Task:
    """The same product under the names of the plan that a cluster shares: Y = X W^T."""
    task = _product_task(small, bench)
    names = {"A": "X", "B": "W", "C": "Y"}
    return replace(
        task, tensors={names[n]: t for n, t in task.tensors.items()}, tolerances={"Y": task.tolerances["C"]},
        distributions=(Distribution("integers", lambda rng, a: {"X": _small(rng, a["M"], a["K"]), "W": _small(rng, a["N"], a["K"])}),),
        oracle=lambda inputs, axes, rows: {"Y": _product({"A": inputs["X"], "B": inputs["W"]}, axes, rows)["C"]},
    )  # fmt: skip


def _rows_task(name: str, oracle: Any, rtol: float, many: int) -> Task:
    return Task(
        name=name, doc="rows of 1,024 floats", axes=("R",), tensors={"X": Tensor(("R", 1024), "f32"), "Y": Tensor(("R", 1024), "f32", "out")},
        scalars={"R": Scalar("i32", "R")}, shapes=(Shape("few", {"R": 7}, "sim"), Shape("many", {"R": many}, "bench")),
        distributions=(Distribution("normal", lambda rng, a: {"X": rng.standard_normal((a["R"], 1024), np.float32)}),),
        tolerances={"Y": Tolerance(reason="exp2 and rcp are approximate", rtol=rtol, atol=1e-9)}, oracle=oracle, flops="4096 * R", unit="f32",
    )  # fmt: skip


def _doubled(inputs: Any, axes: Any, rows: Any) -> dict[str, Any]:
    return {"Y": 2.0 * (inputs["X"] if rows is None else inputs["X"][rows]).astype(np.float64)}


PLANS: dict[str, tuple[str, Task]] = {
    "split_k": (SPLIT_K, _product_task({"M": 70, "N": 40, "K": 400}, {"M": 1024, "N": 1024, "K": 4096})),
    "cluster": (CLUSTER, _rows_of_few({"M": 5, "N": 24, "K": 1096}, {"M": 16, "N": 384, "K": 7168})),
    "softmax": (SOFTMAX, _rows_task("softmax_rows", _softmax, 1e-4, 20000)),
    "counter": (COUNTER, _rows_task("doubled_rows", _doubled, 0.0, 20000)),
}
"""Name, plan, and what it is judged by."""
