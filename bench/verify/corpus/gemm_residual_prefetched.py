@cake.schedule(target="sm_90a")
def gemm_residual_prefetched(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], R: LM.tma2d[LM.bf16, "M", "N"], D: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, alpha: LM.f32, beta: LM.f32, *, BN=128, BK=64, STAGES=5):
    """D = alpha A B^T + beta R: a warp of its own brings R to where D will be staged, while the products run."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(N % 8 == 0 and K % 8 == 0)
    one = 128 * BK * 2
    two = BN * BK * 2
    pool = lm.smem(STAGES * (one + two) + 2 * 128 * BN * 2)
    va = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    vb = pool.view(offset=STAGES * one, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    vr = pool.view(offset=STAGES * (one + two), shape=(128, BN), dtype=lm.bf16, stage=2, swizzle="128b")

    producer = lm.role(warps=range(0, 1))
    residual = lm.role(warps=range(1, 2))
    spare = lm.role(warps=range(2, 4))
    consumers = lm.role(warps=range(4, 12), members=2)
    main = lm.pipeline(stages=STAGES)
    loaded = lm.barrier(pipeline=main, prod=[producer], cons=[consumers], arrive="tx")
    drained = lm.barrier(pipeline=main, prod=[consumers], cons=[producer], arrive="member", primed=True)
    tail = lm.pipeline(stages=2)
    there = lm.barrier(pipeline=tail, prod=[residual], cons=[consumers], arrive="tx")
    stored = lm.barrier(pipeline=tail, prod=[consumers], cons=[residual], arrive="member", primed=True)
    own = lm.named_barrier(consumers, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), swizzle=4)

    with producer:
        for t in lm.tiles(sched):
            for k in lm.range(0, lm.cdiv(K, BK)):
                slot = lm.step(main)
                lm.wait(drained, stage=slot)
                va.tma_load(A, coords=(BK * k, 128 * t.m), stage=slot, barrier=loaded)
                vb.tma_load(B, coords=(BK * k, BN * t.n), stage=slot, barrier=loaded)
    with residual:
        for t in lm.tiles(sched):
            slot = lm.step(tail)
            lm.wait(stored, stage=slot)
            vr.tma_load(R, coords=(BN * t.n, 128 * t.m), stage=slot, barrier=there)
    with consumers:
        c = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(0, lm.cdiv(K, BK)):
                slot = lm.step(main)
                lm.wait(loaded, stage=slot)
                lm.mma(c, va[slot].rows(64 * consumers.index, 64), vb[slot], init=(k == 0))
                lm.mma_wait()
                lm.arrive(drained, stage=slot)
            e = lm.step(tail)
            lm.wait(there, stage=e)
            mine = vr[e].rows(64 * consumers.index, 64)
            r = mine.load(form="acc")
            mine.store(lm.cast(alpha * c + beta * lm.cast(r, lm.f32), lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            mine.tma_store(D, coords=(BN * t.n, 128 * t.m + 64 * consumers.index))
            lm.store_wait(pending=0)
            lm.arrive(stored, stage=e)
        lm.store_wait(pending=0, read=False)
