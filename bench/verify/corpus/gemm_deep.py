"""GEMM with several MMA groups in flight: a slot is released DEPTH steps after it was multiplied."""


@cake.schedule(target="sm_90a")
def gemm_deep(lm, A: LM.tma2d[LM.f16, "M", "K"], B: LM.tma2d[LM.f16, "N", "K"], C: LM.tma2d[LM.f16, "M", "N"],
              M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=6, DEPTH=3, CSTAGES=3):
    """C = A B^T in f16 with a ring of CSTAGES staging slots."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + CSTAGES * 128 * 32 * 2)
    sa = pool.view(offset=0, shape=(128, BK), dtype=lm.f16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.f16, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=a_bytes + b_bytes, shape=(128, 32), dtype=lm.f16, stage=CSTAGES, swizzle="64b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    slots = lm.pipeline(stages=CSTAGES)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, BN)), raster="m", swizzle=8)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sa[s].rows(64 * math.index, 64), sb[s], init=(k == 0))
                lm.mma_wait(pending=DEPTH)
                if k >= DEPTH:
                    lm.arrive(empty, stage=s.prev(DEPTH))
            lm.mma_wait(pending=0)
            if DEPTH > 2:
                if kt > 2:
                    lm.arrive(empty, stage=lm.at(ring).prev(2))
            if DEPTH > 1:
                if kt > 1:
                    lm.arrive(empty, stage=lm.at(ring).prev(1))
            lm.arrive(empty, stage=lm.at(ring))
            for j in lm.static_range(BN // 32):
                c = lm.step(slots)
                lm.store_wait(pending=CSTAGES - 1)
                lm.sync(own)
                part = sc[c].rows(64 * math.index, 64)
                part.store(lm.cast(acc.cols(32 * j, 32), lm.f16))
                lm.fence_proxy()
                lm.sync(own)
                part.tma_store(C, coords=(t.n * BN + 32 * j, t.m * 128 + 64 * math.index))
        lm.store_wait(pending=0)
