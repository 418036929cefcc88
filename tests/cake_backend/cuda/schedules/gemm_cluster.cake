import cake


@cake.schedule(target="sm_90a")
def gemm_ws(lm, A: LM.tma2d, B: LM.tma2d, C: LM.tma2d, M: LM.i32, N: LM.i32, K: LM.i32,
            *, BM=128, BN=256, BK=64, STAGES=4):
    """C[M,N] = A[M,K] @ B[N,K].T, bf16 in/out, f32 accumulate; 2-CTA cluster along m shares each B tile."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0)

    # resources -----------------------------------------------------------------
    a_bytes, b_bytes = STAGES * BM * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 2 * BM * 64 * 2)
    smem_a = pool.view(offset=0, shape=(BM, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(BM, 64), dtype=lm.bf16, stage=2, swizzle="128b")

    # roles ---------------------------------------------------------------------
    math = lm.role(warps=range(0, 8), regs=232, members=2)      # two warpgroups, 64 rows each
    load = lm.role(warps=range(8, 12), regs=40)                 # one elected thread issues TMA

    # synchronisation -----------------------------------------------------------
    ab = lm.pipeline(stages=STAGES)
    ab_full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")               # init_count 1
    ab_empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="warp",
                          primed=True, scope="cluster")                                  # 8 warps x 2 CTAs = 16
    cring = lm.pipeline(stages=2)
    epi = lm.named_barrier(math, per_member=True)               # 128 threads, one hardware id per member
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, BM), lm.cdiv(N, BN)), raster="m", swizzle=8,
                         cluster=(2, 1))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(ab_empty, stage=s)
                smem_a.tma_load(A, coords=(k * BK, t.m * BM), stage=s, barrier=ab_full)
                smem_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=ab_full, multicast="m")

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(ab_full, stage=s)
                lm.mma(acc, smem_a[s].rows(64 * math.index, 64), smem_b[s], init=(k == 0))
                lm.mma_wait(pending=1)                          # the previous k tile has been read
                if k > 0:
                    lm.arrive(ab_empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(ab_empty, stage=lm.at(ab))
            for j in lm.static_range(BN // 64):
                c = lm.step(cring)
                lm.store_wait(pending=1)                        # slot c was read by the store of two slices ago
                lm.sync(epi)
                half = smem_c[c].rows(64 * math.index, 64)
                half.store(lm.cast(acc.cols(64 * j, 64), lm.bf16))
                lm.fence_proxy()                                # generic writes -> async-proxy read
                lm.sync(epi)
                half.tma_store(C, coords=(t.n * BN + 64 * j, t.m * BM + 64 * math.index))
        lm.store_wait(pending=0)
