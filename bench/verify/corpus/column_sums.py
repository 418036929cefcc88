"""Column sums of a tall matrix: each tile adds up its rows in registers, the members through shared memory, the blocks by atomics."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_120a"))
def column_sums(lm, X: LM.tma2d[LM.bf16, "M", "N"], SUM: LM.gmem1d[LM.f32, "N"].zeroed, M: LM.i32, N: LM.i32, *, BM=64, BN=64, STAGES=3):
    """SUM[n] = sum over m of X[m, n]."""
    lm.launch(grid="persistent")
    lm.assume(N % 8 == 0)
    x_bytes = STAGES * BM * BN * 2
    pool = lm.smem(x_bytes + 4 * BN * 4)
    sx = pool.view(offset=0, shape=(BM, BN), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    part = pool.view(offset=x_bytes, shape=(4, BN), dtype=lm.f32)
    load = lm.role(warps=range(4, 5))
    add = lm.role(warps=range(0, 4), members=4)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[add], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[add], cons=[load], arrive="warp", primed=True)
    all4 = lm.named_barrier(add)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(N, BN),), names=("n",))
    mt = lm.cdiv(M, BM)

    with load:
        for t in lm.tiles(sched):
            for i in lm.range(mt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sx.tma_load(X, coords=(t.n * BN, i * BM), stage=s, barrier=full)

    with add:
        for t in lm.tiles(sched):
            total = lm.frag(shape=(16, BN), dtype=lm.f32, form="acc", init=0.0)
            for i in lm.range(mt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                total = total + lm.cast(sx[s].rows(16 * add.index, 16).load(form="acc", like=total), lm.f32)
                lm.arrive(empty, stage=s)
            part.rows(add.index, 1).store(lm.reduce(total, "add", axis=0))
            lm.sync(all4)
            if add.index == 0:
                c = part.rows(0, 1).load(form="vec")
                for j in lm.static_range(1, 4):
                    c = c + part.rows(j, 1).load(form="vec", like=c)
                lm.store(SUM, c, coords=(t.n * BN,), clip=True)
            lm.sync(all4)
