"""Two roles hand tiles to each other at named barriers alone: one prepares the operand in shared memory, the other multiplies it."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_120a"))
def pairs_meeting(lm, A: LM.gmem2d[LM.i8, "M", "K"], S: LM.gmem1d[LM.f32, "M"], B: LM.gmem2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"],
                  M: LM.i32, N: LM.i32, K: LM.i32, *, BM=64, BN=64, BK=64):
    """C = (S A) B^T with A in 8 bits; slot 0 and 1 in turn."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 64 == 0)
    lm.assume(N % 8 == 0)
    pool = lm.smem(2 * (BM + BN) * BK * 2)
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=2, swizzle="128b")
    sb = pool.view(offset=2 * BM * BK * 2, shape=(BN, BK), dtype=lm.bf16, stage=2, swizzle="128b")
    prep = lm.role(warps=range(0, 4))
    math = lm.role(warps=range(4, 8))
    ring = lm.pipeline(stages=2)
    filled = lm.named_barrier([prep, math])
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)))
    kt = K // BK

    with prep:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                a = lm.load(A, coords=(k * BK, t.m * BM), shape=(BM, BK), form="acc", clip=True)
                r = lm.load(S, coords=(t.m * BM,), shape=(BM,), form="rowvec", like=a, clip=True)
                sa[s].store(lm.cast(lm.cast(a, lm.f32) * r, lm.bf16))
                sb[s].store(lm.load(B, coords=(k * BK, t.n * BN), shape=(BN, BK), form="vec", clip=True))
                lm.sync(filled)

    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.sync(filled)
                for kk in lm.static_range(BK // 16):
                    lm.mma(acc, sa[s].cols(16 * kk, 16).ldmatrix(form="a", like=acc), sb[s].cols(16 * kk, 16).ldmatrix(form="b", like=acc))
            lm.store(C, acc, coords=(t.n * BN, t.m * BM), clip=True)
