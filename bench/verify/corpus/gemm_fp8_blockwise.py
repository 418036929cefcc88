"""FP8 GEMM with scales a block of 128 along K: partial products are promoted into f32 accumulators outside the tensor core."""


@cake.schedule(target="sm_90a")
def gemm_fp8_blockwise(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], SA: LM.tma2d[LM.f32, "KB", "M"],
                       SB: LM.gmem1d[LM.f32].const, C: LM.gmem2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32,
                       *, BN=128, STAGES=4):
    """C = sum over blocks kb of (A B^T)[kb] * SA[kb, m] * SB[n / BN * KB + kb]."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 128 == 0 and KB * 128 == K and N % 8 == 0 and M % 4 == 0)
    a_bytes, b_bytes = STAGES * 128 * 128, STAGES * BN * 128
    pool = lm.smem(a_bytes + b_bytes + STAGES * 512)
    qa = pool.view(offset=0, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    qb = pool.view(offset=a_bytes, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    scale = pool.view(offset=a_bytes + b_bytes, shape=(128,), dtype=lm.f32, stage=STAGES)
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), raster="m", swizzle=8)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(KB):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                qa.tma_load(A, coords=(k * 128, t.m * 128), stage=s, barrier=full)
                qb.tma_load(B, coords=(k * 128, t.n * BN), stage=s, barrier=full)
                scale.tma_load(SA, coords=(t.m * 128, k), stage=s, barrier=full)

    with math:
        part = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(KB):
                sb = lm.ld(SB, t.n * KB + k)
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(part, qa[s].rows(64 * math.index, 64), qb[s], init=True)
                sa = scale[s].cols(64 * math.index, 64).load(form="rowvec", like=part)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                acc = acc + part * (sa * sb)
            lm.store(C, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.m * 128 + 64 * math.index), clip=True)
