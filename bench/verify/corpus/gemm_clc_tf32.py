"""TF32 GEMM on datacentre Blackwell: the hardware hands out the tiles, the product is stored from registers a quarter at a time."""


@cake.schedule(target=("sm_100a", "sm_103a"))
def gemm_clc_tf32(lm, A: LM.tma2d[LM.tf32, "M", "K"], B: LM.tma2d[LM.tf32, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"],
                  M: LM.i32, N: LM.i32, K: LM.i32, *, BN=64, BK=32, STAGES=3):
    """C = A B^T; the epilogue frees each quarter of the accumulator's columns as soon as it has read it."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 4 == 0 and N % 4 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 4, STAGES * BN * BK * 4
    pool = lm.smem(a_bytes + b_bytes)
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.tf32, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.tf32, stage=STAGES, swizzle="128b")
    acc = lm.tmem(cols=0, width=BN, shape=(128, BN), dtype=lm.f32)
    epi = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    mma = lm.role(warps=range(5, 6))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True)
    one = lm.pipeline(stages=1)
    done = lm.barrier(pipeline=one, prod=[mma], cons=[epi], arrive="mma")
    taken = lm.barrier(pipeline=one, prod=[epi], cons=[mma], arrive="thread", primed=True)
    sched = lm.scheduler(kind="clc", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), fetch=load)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with mma:
        for t in lm.tiles(sched):
            d = lm.step(one)
            lm.wait(taken, stage=d)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s], sb[s], init=(k == 0))
                lm.commit(empty, stage=s)
            lm.commit(done, stage=d)

    with epi:
        for t in lm.tiles(sched):
            d = lm.step(one)
            lm.wait(done, stage=d)
            for j in lm.static_range(4):
                x = lm.tmem_load(acc.cols(j * (BN // 4), BN // 4))
                lm.tmem_wait("ld")
                lm.store(C, x, coords=(t.n * BN + j * (BN // 4), t.m * 128), clip=True)
            lm.arrive(taken, stage=d)
