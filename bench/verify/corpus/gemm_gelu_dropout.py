@cake.schedule(target="sm_100a")
def gemm_gelu_dropout(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], BIAS: LM.gmem1d[LM.f32, "N"], KEEP: LM.gmem2d[LM.u8, "M", "N"],
                      PRE: LM.gmem2d[LM.bf16, "M", "N"], Y: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, scale: LM.f32, *, BN=128, BK=64, STAGES=4):
    """y = keep ? gelu(a b^T + bias) * scale : 0; what went into the gelu is kept for the backward pass."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 16 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 2 * 128 * 64 * 2)
    smem_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_y = pool.view(offset=a_bytes + b_bytes, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    acc = lm.tmem(cols=0, width=2 * BN, shape=(128, 2 * BN), dtype=lm.f32)

    epi = lm.role(warps=range(0, 4))
    mma = lm.role(warps=range(4, 5))
    load = lm.role(warps=range(5, 6))
    ab = lm.pipeline(stages=STAGES)
    out = lm.pipeline(stages=2)
    yring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[mma], cons=[load], arrive="mma", primed=True)
    done = lm.barrier(pipeline=out, prod=[mma], cons=[epi], arrive="mma")
    drained = lm.barrier(pipeline=out, prod=[epi], cons=[mma], arrive="warp", primed=True)
    meet = lm.named_barrier(epi)
    sched = lm.scheduler(kind="clc", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), fetch=load)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                smem_b.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with mma:
        for t in lm.tiles(sched):
            o = lm.step(out)
            lm.wait(drained, stage=o)
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc.cols(o.index * BN, BN), smem_a[s], smem_b[s], init=(k == 0))
                lm.commit(empty, stage=s)
            lm.commit(done, stage=o)

    with epi:
        for t in lm.tiles(sched):
            o = lm.step(out)
            lm.wait(done, stage=o)
            for j in lm.static_range(BN // 64):
                col = t.n * BN + 64 * j
                x = lm.tmem_load(acc.cols(o.index * BN + 64 * j, 64), form="acc")
                lm.tmem_wait("ld")
                if j == BN // 64 - 1:
                    lm.arrive(drained, stage=o)
                bias = lm.load(BIAS, coords=(col,), shape=(64,), form="colvec", like=x, clip=True)
                keep = lm.load(KEEP, coords=(col, t.m * 128), shape=(128, 64), form="acc", like=x, clip=True)
                x = x + bias
                lm.store(PRE, lm.cast(x, lm.bf16), coords=(col, t.m * 128), clip=True)
                c = lm.step(yring)
                lm.store_wait(pending=1)
                lm.sync(meet)
                smem_y[c].store(lm.cast(lm.where(keep != 0, lm.gelu(x) * scale, 0.0), lm.bf16))
                lm.fence_proxy()
                lm.sync(meet)
                smem_y[c].tma_store(Y, coords=(col, t.m * 128))
        lm.store_wait(pending=0)
