@cake.schedule(target="sm_90a")
def pingpong_bias(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], BIAS: LM.gmem1d[LM.f32, "N"].const, C: LM.tma2d[LM.bf16, "M", "N"],
                  M: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=3):
    """relu(A B^T + bias); two consumer warpgroups own 128 rows each and take turns at the tensor core, so that one stores while the other multiplies."""
    lm.launch(grid="persistent")
    lm.assume(K >= 1)
    lm.assume(K % 8 == 0 and N % BN == 0)
    side = STAGES * (128 + BN) * BK * 2
    pool = lm.smem(2 * side + 2 * 128 * 64 * 2)
    ua = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    ub = pool.view(offset=STAGES * 128 * BK * 2, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    da = pool.view(offset=side, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    db = pool.view(offset=side + STAGES * 128 * BK * 2, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    uc = pool.view(offset=2 * side, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    dc = pool.view(offset=2 * side + 128 * 64 * 2, shape=(128, 64), dtype=lm.bf16, swizzle="128b")

    ping = lm.role(warps=range(0, 4))
    pong = lm.role(warps=range(4, 8))
    feeder = lm.role(warps=range(8, 9))

    up = lm.pipeline(stages=STAGES)
    up_full = lm.barrier(pipeline=up, prod=[feeder], cons=[ping], arrive="tx")
    up_free = lm.barrier(pipeline=up, prod=[ping], cons=[feeder], arrive="member", primed=True)
    down = lm.pipeline(stages=STAGES)
    down_full = lm.barrier(pipeline=down, prod=[feeder], cons=[pong], arrive="tx")
    down_free = lm.barrier(pipeline=down, prod=[pong], cons=[feeder], arrive="member", primed=True)
    baton = lm.pipeline(stages=1)
    to_ping = lm.barrier(pipeline=baton, prod=[pong], cons=[ping], arrive="member", primed=True)
    to_pong = lm.barrier(pipeline=baton, prod=[ping], cons=[pong], arrive="member")
    meet_ping = lm.named_barrier(ping)
    meet_pong = lm.named_barrier(pong)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 256), N // BN), raster="n", swizzle=4)
    steps = lm.cdiv(K, BK)

    with feeder:
        for t in lm.tiles(sched):
            for k in lm.range(steps):
                s = lm.step(up)
                lm.wait(up_free, stage=s)
                ua.tma_load(A, coords=(k * BK, t.m * 256), stage=s, barrier=up_full)
                ub.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=up_full)
            for k in lm.range(steps):
                s = lm.step(down)
                lm.wait(down_free, stage=s)
                da.tma_load(A, coords=(k * BK, t.m * 256 + 128), stage=s, barrier=down_full)
                db.tma_load(B, coords=(k * BK, t.n * BN), stage=s, barrier=down_full)

    with ping:
        acc = lm.frag(shape=(128, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            mine = lm.step(baton)
            lm.wait(to_ping, stage=mine)
            for k in lm.range(steps):
                s = lm.step(up)
                lm.wait(up_full, stage=s)
                lm.mma(acc, ua[s], ub[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(up_free, stage=s.prev())
            lm.arrive(to_pong, stage=mine)
            lm.mma_wait(pending=0)
            lm.arrive(up_free, stage=lm.at(up))
            for j in lm.static_range(BN // 64):
                part = acc.cols(64 * j, 64)
                bias = lm.load(BIAS, coords=(t.n * BN + 64 * j,), shape=(64,), form="colvec", like=part)
                lm.store_wait(pending=0)
                lm.sync(meet_ping)
                uc.store(lm.cast(lm.max(part + bias, 0.0), lm.bf16))
                lm.fence_proxy()
                lm.sync(meet_ping)
                uc.tma_store(C, coords=(t.n * BN + 64 * j, t.m * 256))
        lm.store_wait(pending=0)

    with pong:
        acc = lm.frag(shape=(128, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            mine = lm.step(baton)
            lm.wait(to_pong, stage=mine)
            for k in lm.range(steps):
                s = lm.step(down)
                lm.wait(down_full, stage=s)
                lm.mma(acc, da[s], db[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(down_free, stage=s.prev())
            lm.arrive(to_ping, stage=mine)
            lm.mma_wait(pending=0)
            lm.arrive(down_free, stage=lm.at(down))
            for j in lm.static_range(BN // 64):
                part = acc.cols(64 * j, 64)
                bias = lm.load(BIAS, coords=(t.n * BN + 64 * j,), shape=(64,), form="colvec", like=part)
                lm.store_wait(pending=0)
                lm.sync(meet_pong)
                dc.store(lm.cast(lm.max(part + bias, 0.0), lm.bf16))
                lm.fence_proxy()
                lm.sync(meet_pong)
                dc.tma_store(C, coords=(t.n * BN + 64 * j, t.m * 256 + 128))
        lm.store_wait(pending=0)
