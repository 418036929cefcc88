@cake.schedule(target=("sm_100a", "sm_103a"))
def gemm(lm, A: LM.tma2d[LM.bf16], B: LM.tma2d[LM.bf16], C: LM.tma2d[LM.bf16], M: LM.i32, N: LM.i32, K: LM.i32, *, BN=256, BK=64, STAGES=3):
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    a_bytes, b_bytes = 128 * BK * 2, BN * BK * 2
    pool = lm.smem(STAGES * (a_bytes + b_bytes) + 2 * 128 * 64 * 2)
    smem_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=STAGES * a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=STAGES * (a_bytes + b_bytes), shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    tmem = lm.tmem(cols=0, width=512, shape=(128, 512), dtype=lm.f32)
    load, mma, sched_w, epi = lm.role(warps=[0]), lm.role(warps=[1]), lm.role(warps=[2]), lm.role(warps=range(4, 8))
    ab, accp = lm.pipeline(stages=STAGES), lm.pipeline(stages=2)
    cring = lm.pipeline(stages=2)
    ab_full = lm.barrier(pipeline=ab, prod=[load], cons=[mma], arrive="tx")
    ab_empty = lm.barrier(pipeline=ab, prod=[mma], cons=[load], arrive="mma", primed=True)
    acc_full = lm.barrier(pipeline=accp, prod=[mma], cons=[epi], arrive="mma")
    acc_empty = lm.barrier(pipeline=accp, prod=[epi], cons=[mma], arrive="warp", primed=True)
    own = lm.named_barrier(epi)
    tiles = lm.scheduler(kind="clc", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 256)), fetch=sched_w)
    kt = lm.cdiv(K, BK)
    with load:
        for t in lm.tiles(tiles):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(ab_empty, stage=s)
                smem_a.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=ab_full)
                smem_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=ab_full)
    with mma:
        for t in lm.tiles(tiles):
            d = lm.step(accp)
            lm.wait(acc_empty, stage=d)
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(ab_full, stage=s)
                lm.mma(tmem.cols(256 * d.index, 256), smem_a[s], smem_b[s], init=(k == 0))
                lm.commit(ab_empty, stage=s)
            lm.commit(acc_full, stage=d)
    with sched_w:
        pass
    with epi:
        for t in lm.tiles(tiles):
            d = lm.step(accp)
            lm.wait(acc_full, stage=d)
            for j in lm.static_range(4):
                c = lm.tmem_load(tmem.cols(256 * d.index + 64 * j, 64))
                lm.tmem_wait("ld")
                so = lm.step(cring)
                lm.store_wait(pending=1)
                lm.sync(own)
                smem_c[so].store(lm.cast(c, lm.bf16))
                lm.fence_proxy()
                lm.sync(own)
                smem_c[so].tma_store(C, coords=(t.n * BN + 64 * j, t.m * 128))
            lm.arrive(acc_empty, stage=d)
        lm.store_wait(pending=0)
