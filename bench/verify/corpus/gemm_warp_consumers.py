"""GEMM for consumer Blackwell and Hopper: TMA fills a ring, two roles of two warps each multiply their own half of the columns with mma.sync."""


@cake.schedule(target=("sm_90a", "sm_120a", "sm_121a"))
def gemm_warp_consumers(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"],
                        M: LM.i32, N: LM.i32, K: LM.i32, *, BM=64, BN=64, BK=32, STAGES=3):
    """C = A B^T; A slots have a ring of their own, deeper than the two of B."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    half = BN // 2
    a_bytes, b_bytes = STAGES * BM * BK * 2, 2 * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes)
    sa = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="64b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=2, swizzle="64b")
    left = lm.role(warps=range(0, 2))
    right = lm.role(warps=range(2, 4))
    load_a = lm.role(warps=range(4, 5))
    load_b = lm.role(warps=range(5, 6))
    ar = lm.pipeline(stages=STAGES)
    a_full = lm.barrier(pipeline=ar, prod=[load_a], cons=[left, right], arrive="tx")
    a_empty = lm.barrier(pipeline=ar, prod=[left, right], cons=[load_a], arrive="warp", primed=True)
    br = lm.pipeline(stages=2)
    b_full = lm.barrier(pipeline=br, prod=[load_b], cons=[left, right], arrive="tx")
    b_empty = lm.barrier(pipeline=br, prod=[left, right], cons=[load_b], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), raster="n", swizzle=4)
    kt = lm.cdiv(K, BK)

    with load_a:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ar)
                lm.wait(a_empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=a_full)

    with load_b:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(br)
                lm.wait(b_empty, stage=s)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=b_full)

    with left:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, half), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(kt):
                x = lm.step(ar)
                y = lm.step(br)
                lm.wait(a_full, stage=x)
                lm.wait(b_full, stage=y)
                for kk in lm.static_range(BK // 16):
                    a = sa[x].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = sb[y].rows(0, half).cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                lm.arrive(a_empty, stage=x)
                lm.arrive(b_empty, stage=y)
            lm.store(C, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.m * BM), clip=True)

    with right:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(BM, half), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(kt):
                x = lm.step(ar)
                y = lm.step(br)
                lm.wait(b_full, stage=y)
                lm.wait(a_full, stage=x)
                for kk in lm.static_range(BK // 16):
                    a = sa[x].cols(16 * kk, 16).ldmatrix(form="a", like=acc)
                    b = sb[y].rows(half, half).cols(16 * kk, 16).ldmatrix(form="b", like=acc)
                    lm.mma(acc, a, b)
                lm.arrive(b_empty, stage=y)
                lm.arrive(a_empty, stage=x)
            lm.store(C, lm.cast(acc, lm.bf16), coords=(t.n * BN + half, t.m * BM), clip=True)
