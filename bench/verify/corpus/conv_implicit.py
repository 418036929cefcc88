"""Convolution as a product without unfolding: for each of the R x S taps the copy engine fetches the input shifted, padding comes as zeros."""


@cake.schedule(target="sm_90a")
def conv_implicit(lm, X: LM.tma4d[LM.bf16, "B", "H", "W", "C"], F: LM.tma3d[LM.bf16, "TAPS", "KO", "C"].const, Y: LM.gmem4d[LM.bf16, "B", "H", "W", "KO"],
                  B: LM.i32, H: LM.i32, W: LM.i32, C: LM.i32, KO: LM.i32, TAPS: LM.i32, *, TW=64, BN=64, BK=64, R=3, S=3, STAGES=3):
    """Y[b, h, w] = sum over (r, s) of X[b, h + r - R // 2, w + s - S // 2] F[r * S + s]^T; 64 columns of one image row a tile."""
    lm.launch(grid="persistent")
    lm.assume(C > 0)
    lm.assume(C % 8 == 0 and KO % 8 == 0 and TAPS == R * S)
    x_bytes, f_bytes = STAGES * TW * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(x_bytes + f_bytes)
    sx = pool.view(offset=0, shape=(TW, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sf = pool.view(offset=x_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    load = lm.role(warps=range(0, 1))
    math = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(W, TW), lm.cdiv(KO, BN), H, B), names=("w", "n", "h", "b"))
    ct = lm.cdiv(C, BK)

    with load:
        for t in lm.tiles(sched):
            for r in lm.range(R):
                for q in lm.range(S):
                    for c in lm.range(ct):
                        s = lm.step(ring)
                        lm.wait(empty, stage=s)
                        sx.tma_load(X, coords=(c * BK, t.w * TW + q - S // 2, t.h + r - R // 2, t.b), stage=s, barrier=full)
                        sf.tma_load(F, coords=(c * BK, t.n * BN, r * S + q), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(TW, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for i in lm.range(R * S * ct):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sx[s], sf[s], init=(i == 0))
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(Y, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.w * TW, t.h, t.b), clip=True)
