"""Second layer of a mixture of experts with fixed capacity: blocks of an expert beyond its count are skipped by loaders and multipliers alike."""


@cake.schedule(target="sm_90a")
def moe_masked_down(lm, H: LM.tma3d[LM.bf16, "E", "CAP", "K"], W: LM.tma3d[LM.bf16, "E", "N", "K"].const, COUNT: LM.gmem1d[LM.i32, "E"].const,
                    Y: LM.gmem3d[LM.bf16, "E", "CAP", "N"], E: LM.i32, CAP: LM.i32, N: LM.i32, K: LM.i32, *, BN=64, BK=64, STAGES=3):
    """Y[e, i] = H[e, i] W[e]^T for i < COUNT[e]."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    lm.assume_values(COUNT, 0, CAP + 1)
    h_bytes, w_bytes = STAGES * 64 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(h_bytes + w_bytes)
    sh = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sw = pool.view(offset=h_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    load = lm.role(warps=range(0, 1))
    math = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(CAP, 64), lm.cdiv(N, BN), E), names=("m", "n", "e"))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            if t.m * 64 < lm.ld(COUNT, t.e):
                for k in lm.range(kt):
                    s = lm.step(ring)
                    lm.wait(empty, stage=s)
                    sh.tma_load(H, coords=(k * BK, t.m * 64, t.e), stage=s, barrier=full)
                    sw.tma_load(W, coords=(k * BK, t.n * BN, t.e), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            n = lm.ld(COUNT, t.e)
            if t.m * 64 < n:
                for k in lm.range(kt):
                    s = lm.step(ring)
                    lm.wait(full, stage=s)
                    lm.mma(acc, sh[s], sw[s], init=(k == 0))
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                lm.store(Y, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.m * 64, t.e), mask=lm.in_bounds(acc, lm.min(n, CAP) - t.m * 64, N - t.n * BN))
