"""Hopper GEMM for at most 16 rows and few columns: a cluster shares K, its CTAs add up through global memory, one launch."""


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
def tiny_gemm(lm, X: LM.gmem2d[LM.bf16], W: LM.gmem2d[LM.bf16], Y: LM.gmem2d[LM.bf16], M: LM.i32, N: LM.i32, K: LM.i32,
              *, SPLIT=8, BN=8, WARPS=4, STAGES=4, CTAS=1):
    parts = SPLIT * lm.cdiv(N, BN)
    found = lm.workspace(shape=(parts, 16, BN), dtype=lm.f32)
    lm.run(partial_products, X=X, W=W, Y=Y, P=found, M=M, N=N, K=K, PARTS=parts, SPLIT=SPLIT, BN=BN, WARPS=WARPS, STAGES=STAGES, CTAS=CTAS)
