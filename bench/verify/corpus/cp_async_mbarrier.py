"""Warp-specialised GEMM without TMA: producer warps copy with cp.async and let mbarriers tell when the bytes have landed."""


@cake.schedule(target=("sm_80", "sm_89"))
def cp_async_mbarrier(lm, A: LM.gmem2d[LM.bf16, "M", "K"], B: LM.gmem2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"],
                      M: LM.i32, N: LM.i32, K: LM.i32, *, BM=64, BN=64, BK=32, STAGES=3):
    """C = A B^T; every thread of `fetch` arrives when its own copies are there, every thread of `math` frees a slot."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes = STAGES * BM * BK * 2
    pool = lm.smem(a_bytes + STAGES * BN * BK * 2)
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    math = lm.role(warps=range(0, 4))
    fetch = lm.role(warps=range(4, 6))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[fetch], cons=[math], arrive="cp_async")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[fetch], arrive="thread", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), swizzle=4)
    kt = lm.cdiv(K, BK)

    with fetch:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.cp_async(A, coords=(k * BK, t.m * BM), stage=s)
                sb.cp_async(B, coords=(k * BK, t.n * BN), stage=s)
                lm.arrive(full, stage=s)

    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2), init=0.0)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                for kk in lm.static_range(BK // 16):
                    a = sa[s].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = sb[s].cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                lm.arrive(empty, stage=s)
            lm.store(C, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.m * BM), clip=True)
