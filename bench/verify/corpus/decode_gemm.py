"""Decode projection: a few rows of activations against a wide weight matrix, bound by the weights' bytes."""


@cake.schedule(target=("sm_90a", "sm_120a"))
def decode_gemm(lm, W: LM.tma2d[LM.bf16, "N", "K"].const, X: LM.tma2d[LM.bf16, "M", "K"], Y: LM.gmem2d[LM.bf16, "M", "N"],
                M: LM.i32, N: LM.i32, K: LM.i32, *, BN=64, BK=64, STAGES=6):
    """Y[M,N] = X[M,K] W[N,K]^T for M <= 16: weights are the M side of the instruction, the result is transposed on its way out."""
    lm.launch(grid="tiles", ctas_per_sm=1)
    lm.assume(K > 0)
    lm.assume(M <= 16 and K % 8 == 0 and N % 8 == 0)
    w_bytes, x_bytes = STAGES * BN * BK * 2, STAGES * 16 * BK * 2
    pool = lm.smem(w_bytes + x_bytes + 16 * BN * 2)
    sw = pool.view(offset=0, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sx = pool.view(offset=w_bytes, shape=(16, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sy = pool.view(offset=w_bytes + x_bytes, shape=(16, BN), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    w_full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    x_full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    cta = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(N, BN),), names=("n",))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sw.tma_load(W, coords=(k * BK, t.n * BN), stage=s, barrier=w_full, cache="stream")
                if k == 0:
                    lm.pdl_wait()                              # weights are constant, activations come from upstream
                sx.tma_load(X, coords=(k * BK, 0), stage=s, barrier=x_full, cache="keep")

    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BN, 16), dtype=lm.f32, form="acc", warps=(4, 1), init=0.0)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(w_full, stage=s)
                lm.wait(x_full, stage=s)
                for kk in lm.static_range(BK // 16):
                    a = sw[s].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = sx[s].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                lm.arrive(empty, stage=s)
            sy.T.store(lm.cast(acc, lm.bf16))
            lm.sync(cta)
            v = sy.load(form="vec")
            lm.pdl_wait()
            lm.store(Y, v, coords=(t.n * BN, 0), clip=True)
