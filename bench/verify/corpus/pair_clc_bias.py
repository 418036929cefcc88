"""Pairs of CTAs that draw tiles by cluster launch control, two accumulators, an epilogue that stores by TMA."""


@cake.schedule(target=("sm_100a", "sm_103a"))
def pair_clc_bias(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], bias: LM.gmem1d[LM.f32, "N"], C: LM.tma2d[LM.bf16, "M", "N"],
                  M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=4):
    """C = A B^T + bias by pairs of CTAs: tiles come from cluster launch control, the epilogue of one tile runs beside the products of the next."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * (BN // 2) * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 2 * 128 * 64 * 2)
    smem_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN // 2, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_c = pool.view(offset=a_bytes + b_bytes, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    acc = lm.tmem(cols=0, width=2 * BN, shape=(128, 2 * BN), dtype=lm.f32)

    load = lm.role(warps=range(0, 1))
    mul = lm.role(warps=range(1, 2))
    epi = lm.role(warps=range(4, 8))
    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[mul], arrive="tx", scope="cluster")
    empty = lm.barrier(pipeline=ab, prod=[mul], cons=[load], arrive="mma", primed=True, scope="cluster")
    out = lm.pipeline(stages=2)
    ready = lm.barrier(pipeline=out, prod=[mul], cons=[epi], arrive="mma", scope="cluster")
    drained = lm.barrier(pipeline=out, prod=[epi], cons=[mul], arrive="warp", primed=True, scope="cluster")
    cring = lm.pipeline(stages=2)
    own = lm.named_barrier(epi)
    sched = lm.scheduler(kind="clc", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), raster="m", swizzle=4, fetch=load)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                smem_b.tma_load(B, coords=(k * BK, t.n * BN + lm.cta_rank("m") * (BN // 2)), stage=s, barrier=full)
    with mul:
        for t in lm.tiles(sched):
            o = lm.step(out)
            lm.wait(drained, stage=o)
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc.cols(o.index * BN, BN), smem_a[s], smem_b[s], init=(k == 0), ctas=2)
                lm.commit(empty, stage=s)
            lm.commit(ready, stage=o)
    with epi:
        for t in lm.tiles(sched):
            o = lm.step(out)
            lm.wait(ready, stage=o)
            for j in lm.static_range(BN // 64):
                x = lm.tmem_load(acc.cols(o.index * BN + 64 * j, 64))
                lm.tmem_wait("ld")
                if j == BN // 64 - 1:
                    lm.arrive(drained, stage=o)
                add = lm.load(bias, coords=(t.n * BN + 64 * j,), shape=(64,), form="colvec", like=x, clip=True)
                c = lm.step(cring)
                lm.store_wait(pending=1)
                lm.sync(own)
                smem_c[c].store(lm.cast(x + add, lm.bf16))
                lm.fence_proxy()
                lm.sync(own)
                smem_c[c].tma_store(C, coords=(t.n * BN + 64 * j, t.m * 128))
        lm.store_wait(pending=0)
