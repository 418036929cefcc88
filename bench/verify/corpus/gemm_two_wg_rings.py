"""Ping-pong without turns: each math warpgroup is a role with a ring of its own, and one warp fills both, a tile of even and a tile of odd number after each other."""
@cake.schedule(target="sm_90a")
def gemm_two_wg_rings(lm, A: LM.tma2d[LM.f16, "M", "K"], B: LM.tma2d[LM.f16, "K", "N"], C: LM.gmem2d[LM.f16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32, *, BK=64, DEEP=3):
    lm.launch(grid="tiles")
    lm.assume(K > 0)
    lm.assume(M % 8 == 0 and N % 8 == 0 and K % 8 == 0)
    pool = lm.smem(2 * DEEP * (64 + 128) * BK * 2)
    base = DEEP * 64 * BK * 2
    size = DEEP * 128 * BK * 2
    a0 = pool.view(offset=0, shape=(64, BK), dtype=lm.f16, stage=DEEP, swizzle="128b")
    a1 = pool.view(offset=base, shape=(64, BK), dtype=lm.f16, stage=DEEP, swizzle="128b")
    b0 = pool.view(offset=2 * base, shape=(BK, 128), dtype=lm.f16, stage=DEEP, swizzle="128b")
    b1 = pool.view(offset=2 * base + size, shape=(BK, 128), dtype=lm.f16, stage=DEEP, swizzle="128b")
    feeder = lm.role(warps=range(8, 12), regs=24)
    ping = lm.role(warps=range(0, 4), regs=240)
    pong = lm.role(warps=range(4, 8), regs=240)
    r0, r1 = lm.pipeline(stages=DEEP), lm.pipeline(stages=DEEP)
    f0 = lm.barrier(pipeline=r0, prod=[feeder], cons=[ping], arrive="tx")
    e0 = lm.barrier(pipeline=r0, prod=[ping], cons=[feeder], arrive="member", primed=True)
    f1 = lm.barrier(pipeline=r1, prod=[feeder], cons=[pong], arrive="tx")
    e1 = lm.barrier(pipeline=r1, prod=[pong], cons=[feeder], arrive="member", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 128)))
    steps = (K + BK - 1) // BK

    with feeder:
        for t in lm.tiles(sched):
            for k in lm.range(steps):
                p = lm.step(r0)
                lm.wait(e0, stage=p)
                a0.tma_load(A, coords=(k * BK, t.m * 128), stage=p, barrier=f0)
                b0.tma_load(B, coords=(t.n * 128, k * BK), stage=p, barrier=f0)
                q = lm.step(r1)
                lm.wait(e1, stage=q)
                a1.tma_load(A, coords=(k * BK, t.m * 128 + 64), stage=q, barrier=f1)
                b1.tma_load(B, coords=(t.n * 128, k * BK), stage=q, barrier=f1)

    with ping:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0)
        for t in lm.tiles(sched):
            for k in lm.range(steps):
                p = lm.step(r0)
                lm.wait(f0, stage=p)
                lm.mma(acc, a0[p], b0[p].T)
                lm.mma_wait(pending=0)
                lm.arrive(e0, stage=p)
            lm.store(C, lm.cast(acc, lm.f16), coords=(t.n * 128, t.m * 128), clip=True)

    with pong:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0)
        for t in lm.tiles(sched):
            for k in lm.range(steps):
                q = lm.step(r1)
                lm.wait(f1, stage=q)
                lm.mma(acc, a1[q], b1[q].T)
                lm.mma_wait(pending=0)
                lm.arrive(e1, stage=q)
            lm.store(C, lm.cast(acc, lm.f16), coords=(t.n * 128, t.m * 128 + 64), clip=True)
