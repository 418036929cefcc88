"""tf32 on Blackwell: tiles come from the hardware; the epilogue's two halves stage their columns, a warp of its own sends them off and gives the bytes back."""
@cake.schedule(target="sm_103a")
def tcgen05_store_warp(lm, A: LM.tma2d[LM.tf32, "M", "K"], B: LM.tma2d[LM.tf32, "N", "K"], BIAS: LM.gmem1d[LM.f32, "N"].const, C: LM.tma2d[LM.f32, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, STAGES=4, BK=32):
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 4 == 0 and N % 4 == 0)
    pool = lm.smem(STAGES * (128 + BN) * BK * 4 + 4 * 128 * 32 * 4)
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.tf32, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=STAGES * 128 * BK * 4, shape=(BN, BK), dtype=lm.tf32, stage=STAGES, swizzle="128b")
    out = pool.view(offset=STAGES * (128 + BN) * BK * 4, shape=(128, 32), dtype=lm.f32, stage=4, swizzle="128b")
    d = lm.tmem(cols=0, width=256, shape=(128, 256), dtype=lm.f32)
    epi = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    mul = lm.role(warps=range(5, 6))
    send = lm.role(warps=range(6, 7))
    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[mul], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[mul], cons=[load], arrive="mma", primed=True)
    tm = lm.pipeline(stages=2)
    done = lm.barrier(pipeline=tm, prod=[mul], cons=[epi], arrive="mma")
    free = lm.barrier(pipeline=tm, prod=[epi], cons=[mul], arrive="warp", primed=True)
    og = lm.pipeline(stages=4)
    staged = lm.barrier(pipeline=og, prod=[epi], cons=[send], arrive="thread")
    sent = lm.barrier(pipeline=og, prod=[send], cons=[epi], arrive="member", primed=True)
    sched = lm.scheduler(kind="clc", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), fetch=load)
    kt = lm.cdiv(K, BK)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)
    with mul:
        for t in lm.tiles(sched):
            o = lm.step(tm)
            lm.wait(free, stage=o)
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(d.cols(128 * o.index, BN), sa[s], sb[s], init=(k == 0))
                lm.commit(empty, stage=s)
            lm.commit(done, stage=o)
    with epi:
        for t in lm.tiles(sched):
            o = lm.step(tm)
            lm.wait(done, stage=o)
            for j in lm.static_range(BN // 32):
                x = lm.tmem_load(d.cols(128 * o.index + 32 * j, 32))
                lm.tmem_wait("ld")
                if j == BN // 32 - 1:
                    lm.arrive(free, stage=o)
                bias = lm.load(BIAS, coords=(t.n * BN + 32 * j,), shape=(32,), form="colvec", like=x, clip=True)
                g = lm.step(og)
                lm.wait(sent, stage=g)
                out[g].store(lm.max(x + bias, 0))
                lm.fence_proxy()
                lm.arrive(staged, stage=g)
    with send:
        for t in lm.tiles(sched):
            for j in lm.range(BN // 32):
                g = lm.step(og)
                lm.wait(staged, stage=g)
                out[g].tma_store(C, coords=(t.n * BN + 32 * j, t.m * 128))
                lm.store_wait(pending=0)
                lm.arrive(sent, stage=g)
        lm.store_wait(pending=0, read=False)
