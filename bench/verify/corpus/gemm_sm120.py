"""FP8 GEMM of the consumer Blackwell: TMA ring, a producer warp, eight warps of mma.sync, per-token and per-channel scales."""


@cake.schedule(target=("sm_120a", "sm_121a"))
def gemm_sm120(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], SA: LM.gmem1d[LM.f32, "M"], SB: LM.gmem1d[LM.f32, "N"], C: LM.gmem2d[LM.bf16, "M", "N"],
               M: LM.i32, N: LM.i32, K: LM.i32, *, BK=128, STAGES=3):
    """FP8 GEMM of the consumer Blackwell: TMA ring, a producer warp, eight warps of mma.sync, per-token and per-channel scales."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 16 == 0 and N % 8 == 0)
    ab = 128 * BK
    pool = lm.smem(2 * STAGES * ab)
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=STAGES * ab, shape=(128, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 8))
    load = lm.role(warps=range(8, 9))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 128)), swizzle=8)
    kt = lm.cdiv(K, BK)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * 128), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(128, 128), dtype=lm.f32, form="acc", warps=(4, 2), init=0.0)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                for j in lm.static_range(BK // 32):
                    a = sa[s].cols(32 * j, 32).ldmatrix(form="a", like=acc)
                    b = sb[s].cols(32 * j, 32).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                lm.arrive(empty, stage=s)
            rs = lm.load(SA, coords=(t.m * 128,), shape=(128,), form="rowvec", like=acc, clip=True)
            cs = lm.load(SB, coords=(t.n * 128,), shape=(128,), form="colvec", like=acc, clip=True)
            lm.store(C, lm.cast(acc * rs * cs, lm.bf16), coords=(t.n * 128, t.m * 128), clip=True)
