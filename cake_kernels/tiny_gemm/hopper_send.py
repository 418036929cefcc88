"""Hopper GEMM for at most 16 rows and few columns: a cluster shares K, and its CTAs send their sums to the first one."""


@cake.schedule(target="sm_90a")
def tiny_gemm_send(lm, X: LM.tma2d[LM.bf16, "M", "K"], W: LM.tma2d[LM.bf16, "N", "K"].const, Y: LM.gmem2d[LM.bf16, "M", "N"],
                   M: LM.i32, N: LM.i32, K: LM.i32, *, SPLIT=8, BN=8, WARPS=7, STAGES=2, CTAS=1, EARLY=True):
    """Y[M,N] = X[M,K] @ W[N,K].T; CTA t.k of a cluster takes the kt slots from t.k * kt on."""
    lm.launch(grid="tiles", cluster=(SPLIT, 1), ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(M <= 16 and K % 8 == 0 and N % 8 == 0)

    BK = 64 * WARPS
    x_bytes, w_bytes = STAGES * 16 * BK * 2, STAGES * BN * BK * 2
    p_bytes = WARPS * 16 * BN * 4
    pool = lm.smem(x_bytes + w_bytes + p_bytes + SPLIT * 16 * BN * 4)
    xs = pool.view(offset=0, shape=(16, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    ws = pool.view(offset=x_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    partial = pool.view(offset=x_bytes + w_bytes, shape=(16, BN), dtype=lm.f32, stage=WARPS)
    inbox = pool.view(offset=x_bytes + w_bytes + p_bytes, shape=(16 * SPLIT, BN), dtype=lm.f32)

    math = lm.role(warps=range(0, WARPS), members=WARPS)
    load_w = lm.role(warps=range(WARPS, WARPS + 1))
    load_x = lm.role(warps=range(WARPS + 1, WARPS + 2))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load_w, load_x], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load_w, load_x], arrive="warp", primed=True)
    sums = lm.named_barrier(math)
    mail = lm.pipeline(stages=1)
    arrived = lm.barrier(pipeline=mail, prod=[math], cons=[math], arrive="tx", scope="cluster")
    sched = lm.scheduler(kind="grid", tiles=(SPLIT, lm.cdiv(N, BN)), names=("k", "n"), cluster=(SPLIT, 1))
    kt = lm.cdiv(K, BK * SPLIT)

    with load_w:
        if EARLY:
            lm.pdl_launch()                                                      # the next kernel sets up and fetches its weights meanwhile
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                ws.tma_load(W, coords=((t.k * kt + k) * BK, t.n * BN), stage=s, barrier=full, cache="stream")

    with load_x:
        lm.pdl_wait()                                                            # weights do not change, activations come from the kernel before
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                xs.tma_load(X, coords=((t.k * kt + k) * BK, 0), stage=s, barrier=full, cache="keep")

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
                box = lm.step(mail)
                inbox.rows(16 * lm.cta_rank(), 16).send(acc, cta=0, barrier=arrived, stage=box)
                if t.k == 0:
                    lm.wait(arrived, stage=box)
                    total = inbox.rows(0, 16).load(form="acc", like=acc)
                    for i in lm.static_range(1, SPLIT):
                        total = total + inbox.rows(16 * i, 16).load(form="acc", like=acc)
                    lm.pdl_wait()
                    lm.store(Y, lm.cast(total, lm.bf16), coords=(t.n * BN, 0), clip=True)
