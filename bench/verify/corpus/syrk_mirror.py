@cake.schedule(target="sm_90a")
def syrk_mirror(lm, X: LM.tma2d[LM.bf16, "M", "K"], C: LM.tma2d[LM.bf16, "M", "M"], M: LM.i32, K: LM.i32, *, BK=64, STAGES=4):
    """C = X X^T: only tiles on and above the diagonal are multiplied, each of the others is the transpose of one of them."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 8 == 0 and M % 8 == 0)
    slot = 128 * BK * 2
    pool = lm.smem(2 * STAGES * slot + 2 * 128 * 128 * 2)
    left = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    right = pool.view(offset=STAGES * slot, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    straight = pool.view(offset=2 * STAGES * slot, shape=(128, 128), dtype=lm.bf16, swizzle="128b")
    turned = pool.view(offset=2 * STAGES * slot + 32768, shape=(128, 128), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=216, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    both = lm.named_barrier(math)
    side = lm.cdiv(M, 128)
    sched = lm.scheduler(kind="static", tiles=(side, side), raster="m", swizzle=4)
    steps = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            if t.m <= t.n:
                for k in lm.range(steps):
                    s = lm.step(ring)
                    lm.wait(empty, stage=s)
                    left.tma_load(X, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                    right.tma_load(X, coords=(k * BK, t.n * 128), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        half = 64 * math.index
        for t in lm.tiles(sched):
            if t.m <= t.n:
                for k in lm.range(steps):
                    s = lm.step(ring)
                    lm.wait(full, stage=s)
                    lm.mma(acc, left[s].rows(half, 64), right[s], init=(k == 0))
                    lm.mma_wait(pending=0)
                    lm.arrive(empty, stage=s)
                out = lm.cast(acc, lm.bf16)
                lm.store_wait(pending=0)
                lm.sync(both)
                straight.rows(half, 64).store(out)
                if t.m < t.n:
                    turned.cols(half, 64).T.store(out)
                lm.fence_proxy()
                lm.sync(both)
                straight.rows(half, 64).tma_store(C, coords=(t.n * 128, t.m * 128 + half))
                if t.m < t.n:
                    turned.rows(half, 64).tma_store(C, coords=(t.m * 128, t.n * 128 + half))
        lm.store_wait(pending=0)
