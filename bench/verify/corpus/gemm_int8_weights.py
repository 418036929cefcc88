"""Weights in int8: a warpgroup widens them into the tensor core's tiles, a handoff from ordinary stores to the async proxy."""


@cake.schedule(target="sm_90a")
def gemm_int8_weights(lm, A: LM.tma2d[LM.bf16, "M", "K"], W: LM.tma2d[LM.i8, "N", "K"], C: LM.gmem2d[LM.bf16, "M", "N"],
                      M: LM.i32, N: LM.i32, K: LM.i32, scale: LM.f32, *, BN=128, BK=64, STAGES=3, RAW=2):
    """C = A (scale * W)^T; load -> widen -> math, each link with a ring of its own."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 16 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 64 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + RAW * BN * BK)
    sa = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    packed = pool.view(offset=a_bytes + b_bytes, shape=(BN, BK), dtype=lm.i8, stage=RAW)
    math = lm.role(warps=range(0, 4), regs=208)
    widen = lm.role(warps=range(4, 8), regs=208)
    load = lm.role(warps=range(8, 12), regs=40)
    raw = lm.pipeline(stages=RAW)
    raw_full = lm.barrier(pipeline=raw, prod=[load], cons=[widen], arrive="tx")
    raw_empty = lm.barrier(pipeline=raw, prod=[widen], cons=[load], arrive="warp", primed=True)
    ring = lm.pipeline(stages=STAGES)
    a_full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    b_full = lm.barrier(pipeline=ring, prod=[widen], cons=[math], arrive="warp")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load, widen], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, BN)))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                r = lm.step(raw)
                lm.wait(raw_empty, stage=r)
                packed.tma_load(W, coords=(k * BK, t.n * BN), stage=r, barrier=raw_full)
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * BK, t.m * 64), stage=s, barrier=a_full)

    with widen:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                r = lm.step(raw)
                lm.wait(raw_full, stage=r)
                w = packed[r].load(form="vec")
                lm.arrive(raw_empty, stage=r)
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sb[s].store(lm.cast(lm.cast(w, lm.f32) * scale, lm.bf16))
                lm.fence_proxy()                               # every writer, before it says that its part is there
                lm.arrive(b_full, stage=s)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(a_full, stage=s)
                lm.wait(b_full, stage=s)
                lm.mma(acc, sa[s], sb[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ring))
            lm.store(C, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.m * 64), clip=True)
