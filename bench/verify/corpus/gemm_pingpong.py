"""Ping-pong GEMM: each math warpgroup has a ring and a tile of its own; turns let one multiply while the other stores."""


@cake.schedule(target="sm_90a")
def gemm_pingpong(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.tma2d[LM.bf16, "M", "N"],
                  M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=3):
    """C = A B^T; a tile is 64 rows by twice BN columns, member i computes columns i * BN on."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and N % 8 == 0)
    a_bytes, b_bytes = STAGES * 64 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(2 * a_bytes + 2 * b_bytes + 2 * 64 * BN * 2)
    a0 = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    a1 = pool.view(offset=a_bytes, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    b0 = pool.view(offset=2 * a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    b1 = pool.view(offset=2 * a_bytes + b_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out = pool.view(offset=2 * a_bytes + 2 * b_bytes, shape=(128, BN), dtype=lm.bf16, swizzle="128b")

    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    r0, r1 = lm.pipeline(stages=STAGES), lm.pipeline(stages=STAGES)
    full0 = lm.barrier(pipeline=r0, prod=[load], cons=[math], arrive="tx")
    full1 = lm.barrier(pipeline=r1, prod=[load], cons=[math], arrive="tx")
    empty0 = lm.barrier(pipeline=r0, prod=[math], cons=[load], arrive="member", primed=True)
    empty1 = lm.barrier(pipeline=r1, prod=[math], cons=[load], arrive="member", primed=True)
    turn = lm.turns(math)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 2 * BN)), raster="m", swizzle=8)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(r0)
                lm.wait(empty0, stage=s)
                a0.tma_load(A, coords=(k * BK, t.m * 64), stage=s, barrier=full0)
                b0.tma_load(B, coords=(k * BK, t.n * 2 * BN), stage=s, barrier=full0)
            for k in lm.range(kt):
                s = lm.step(r1)
                lm.wait(empty1, stage=s)
                a1.tma_load(A, coords=(k * BK, t.m * 64), stage=s, barrier=full1)
                b1.tma_load(B, coords=(k * BK, t.n * 2 * BN + BN), stage=s, barrier=full1)

    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        mine = out.rows(64 * math.index, 64)
        for t in lm.tiles(sched):
            lm.wait(turn)
            if math.index == 0:
                for k in lm.range(kt):
                    s = lm.step(r0)
                    lm.wait(full0, stage=s)
                    lm.mma(acc, a0[s], b0[s], init=(k == 0))
                    lm.mma_wait(pending=1)
                    if k > 0:
                        lm.arrive(empty0, stage=s.prev())
                lm.mma_wait(pending=0)
                lm.arrive(empty0, stage=lm.at(r0))
            else:
                for k in lm.range(kt):
                    s = lm.step(r1)
                    lm.wait(full1, stage=s)
                    lm.mma(acc, a1[s], b1[s], init=(k == 0))
                    lm.mma_wait(pending=1)
                    if k > 0:
                        lm.arrive(empty1, stage=s.prev())
                lm.mma_wait(pending=0)
                lm.arrive(empty1, stage=lm.at(r1))
            lm.arrive(turn)
            lm.store_wait(pending=0)
            lm.sync(own)
            mine.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            mine.tma_store(C, coords=(t.n * 2 * BN + BN * math.index, t.m * 64))
        lm.store_wait(pending=0)
