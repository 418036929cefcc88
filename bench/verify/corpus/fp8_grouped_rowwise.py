@cake.schedule(target="sm_100a")
def fp8_grouped_rowwise(lm, X: LM.tma2d[LM.e4m3, "ROWS", "K"], W: LM.tma3d[LM.e4m3, "E", "N", "K"], SX: LM.gmem1d[LM.f32, "ROWS"], SW: LM.gmem2d[LM.f32, "E", "N"],
                        OFFS: LM.gmem1d[LM.i32], Y: LM.gmem2d[LM.bf16, "ROWS", "N"], ROWS: LM.i32, E: LM.i32, N: LM.i32, K: LM.i32, *, BN=128, BK=128, STAGES=4):
    """Y[g] = (X[g] sx) (W[g] sw)^T for ragged groups: one scale a token, one an output column, both applied in the epilogue."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 16 == 0 and N % 8 == 0)
    a_bytes = STAGES * 128 * BK
    pool = lm.smem(a_bytes + STAGES * BN * BK)
    smem_a = pool.view(offset=0, shape=(128, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    smem_b = pool.view(offset=a_bytes, shape=(BN, BK), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    acc = lm.tmem(cols=0, width=2 * BN, shape=(128, 2 * BN), dtype=lm.f32)

    load = lm.role(warps=range(0, 1))
    mma = lm.role(warps=range(1, 2))
    epi = lm.role(warps=range(4, 8))
    ab = lm.pipeline(stages=STAGES)
    out = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ab, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ab, prod=[mma], cons=[load], arrive="mma", primed=True)
    done = lm.barrier(pipeline=out, prod=[mma], cons=[epi], arrive="mma")
    drained = lm.barrier(pipeline=out, prod=[epi], cons=[mma], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grouped", tiles=(lm.cdiv(N, BN),), names=("n",), offsets=OFFS, block=128)
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(empty, stage=s)
                smem_a.tma_load(X, coords=(k * BK, t.row0), stage=s, barrier=full)
                smem_b.tma_load(W, coords=(k * BK, t.n * BN, t.group), stage=s, barrier=full)

    with mma:
        for t in lm.tiles(sched):
            o = lm.step(out)
            lm.wait(drained, stage=o)
            for k in lm.range(kt):
                s = lm.step(ab)
                lm.wait(full, stage=s)
                lm.mma(acc.cols(o.index * BN, BN), smem_a[s], smem_b[s], init=(k == 0))
                lm.commit(empty, stage=s)
            lm.commit(done, stage=o)

    with epi:
        for t in lm.tiles(sched):
            o = lm.step(out)
            lm.wait(done, stage=o)
            for j in lm.static_range(BN // 32):
                col = t.n * BN + 32 * j
                x = lm.tmem_load(acc.cols(o.index * BN + 32 * j, 32), form="rows")
                lm.tmem_wait("ld")
                if j == BN // 32 - 1:
                    lm.arrive(drained, stage=o)
                sx = lm.load(SX, coords=(t.row0,), shape=(128,), form="rowvec", like=x, clip=True)
                sw = lm.load(SW, coords=(col, t.group), shape=(32,), form="colvec", like=x, clip=True)
                lm.store(Y, lm.cast(x * sx * sw, lm.bf16), coords=(col, t.row0), mask=lm.in_bounds(x, t.rows, N - col))
