@cake.schedule(target=("sm_120a", "sm_121a"))
def serial_splitk_sm120(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.bf16, "N", "K"], C: LM.gmem2d[LM.f32, "M", "N"], TURN: LM.gmem1d[LM.i32, "TILES"].zeroed, M: LM.i32, N: LM.i32, K: LM.i32,
                        TILES: LM.i32, SPLITS: LM.i32, *, BK=64, STAGES=3):
    """K in parts that add up in C in their order, so that bits repeat: a tile's part waits for its turn, the first one writes, the others add."""
    lm.launch(grid="persistent")
    lm.assume(SPLITS > 0)
    lm.assume(K >= SPLITS * BK)
    lm.assume(K % 8 == 0)
    lm.assume(TILES == lm.cdiv(M, 64) * lm.cdiv(N, 128))
    a_bytes, b_bytes = STAGES * 64 * BK * 2, STAGES * 128 * BK * 2
    pool = lm.smem(a_bytes + b_bytes)
    smem_a = pool.view(offset=0, shape=(64, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ab = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 128), SPLITS), names=("m", "n", "p"))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(t.p * kt // SPLITS, (t.p + 1) * kt // SPLITS):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(A, coords=(k * BK, t.m * 64), stage=s, barrier=full)
                smem_b.tma_load(B, coords=(k * BK, t.n * 128), stage=s, barrier=full)

    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", warps=(2, 2))
        for t in lm.tiles(sched):
            first = t.p * kt // SPLITS
            for k in lm.range(first, (t.p + 1) * kt // SPLITS):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_a[s].ldmatrix(form="a", like=acc), smem_b[s].ldmatrix(form="b", like=acc), init=(k == first))
                lm.arrive(empty, stage=s)
            tile = t.n * lm.cdiv(M, 64) + t.m
            if t.p > 0:
                lm.spin(TURN, tile, t.p)
                before = lm.load(C, coords=(t.n * 128, t.m * 64), shape=(64, 128), form="acc", like=acc, clip=True)
                acc = acc + before
            lm.store(C, acc, coords=(t.n * 128, t.m * 64), clip=True)
            lm.signal(TURN, tile, t.p + 1)
