@cake.schedule(target="sm_100a")
def moe_gather_tcgen05(lm, X: LM.tma2d[LM.bf16, "T", "K"], W: LM.tma3d[LM.bf16, "E", "N", "K"], SORTED: LM.gmem1d[LM.i32, "CAP"], OWNER: LM.gmem1d[LM.i32, "NB"], GATE: LM.gmem1d[LM.f32, "CAP"],
                       Y: LM.gmem2d[LM.bf16, "CAP", "N"], T: LM.i32, K: LM.i32, E: LM.i32, N: LM.i32, CAP: LM.i32, NB: LM.i32, *, BN=128, BK=64, STAGES=4):
    """The grouped product behind align-and-sort: 128 tokens by number a block of one expert, gathered by the copy engine; blocks whose owner is -1 are empty."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 8 == 0 and CAP == NB * 128)
    lm.assume_values(OWNER, -1, E)
    a_bytes, b_bytes = STAGES * 128 * BK * 2, STAGES * BN * BK * 2
    pool = lm.smem(a_bytes + b_bytes + 2 * 512)
    smem_a = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    rows = pool.view(offset=a_bytes + b_bytes, shape=(128,), dtype=lm.i32, stage=2)
    acc = lm.tmem(cols=0, width=BN, shape=(128, BN), dtype=lm.f32)

    epi = lm.role(warps=range(0, 4))
    mma = lm.role(warps=range(4, 5))
    load = lm.role(warps=range(5, 6))
    weights = lm.role(warps=range(6, 7))
    ids = lm.role(warps=range(7, 8))
    ab = lm.pipeline(stages=STAGES)
    one = lm.pipeline(stages=1)
    numbers = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ab, prod=[load, weights], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[mma], cons=[load, weights], arrive="mma", primed=True)
    done = lm.barrier(pipeline=one, prod=[mma], cons=[epi], arrive="mma")
    drained = lm.barrier(pipeline=one, prod=[epi], cons=[mma], arrive="warp", primed=True)
    here = lm.barrier(pipeline=numbers, prod=[ids], cons=[load], arrive="tx")
    used = lm.barrier(pipeline=numbers, prod=[load], cons=[ids], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(NB, lm.cdiv(N, BN)), names=("b", "n"))
    kt = lm.cdiv(K, BK)

    with ids:
        for t in lm.tiles(sched):
            if lm.ld(OWNER, t.b) >= 0:
                i = lm.step(numbers)
                lm.wait(used, stage=i)
                rows.bulk_load(SORTED, offset=t.b * 128, n=128, stage=i, barrier=here)

    with load:
        for t in lm.tiles(sched):
            if lm.ld(OWNER, t.b) >= 0:
                i = lm.step(numbers)
                lm.wait(here, stage=i)
                for k in lm.range(kt):
                    s = lm.step(ab)
                    lm.wait(empty, stage=s)
                    smem_a.tma_gather(X, rows=rows[i], col=k * BK, stage=s, barrier=full)
                lm.arrive(used, stage=i)

    with weights:
        for t in lm.tiles(sched):
            owner = lm.ld(OWNER, t.b)
            if owner >= 0:
                for k in lm.range(kt):
                    s = lm.step(ab)
                    lm.wait(empty, stage=s)
                    smem_b.tma_load(W, coords=(k * BK, t.n * BN, owner), stage=s, barrier=full)

    with mma:
        for t in lm.tiles(sched):
            if lm.ld(OWNER, t.b) >= 0:
                o = lm.step(one)
                lm.wait(drained, stage=o)
                for k in lm.range(kt):
                    s = lm.step(ab)
                    lm.wait(full, stage=s)
                    lm.mma(acc, smem_a[s], smem_b[s], init=(k == 0))
                    lm.commit(empty, stage=s)
                lm.commit(done, stage=o)

    with epi:
        for t in lm.tiles(sched):
            if lm.ld(OWNER, t.b) >= 0:
                o = lm.step(one)
                lm.wait(done, stage=o)
                for j in lm.static_range(BN // 32):
                    x = lm.tmem_load(acc.cols(32 * j, 32), form="rows")
                    lm.tmem_wait("ld")
                    if j == BN // 32 - 1:
                        lm.arrive(drained, stage=o)
                    gate = lm.load(GATE, coords=(t.b * 128,), shape=(128,), form="rowvec", like=x)
                    lm.store(Y, lm.cast(x * gate, lm.bf16), coords=(t.n * BN + 32 * j, t.b * 128), clip=True)
