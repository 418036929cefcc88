@cake.schedule(target="sm_100a")
def tcgen05_swiglu_ring(lm, X: LM.tma2d[LM.bf16, "M", "K"], WG: LM.tma2d[LM.bf16, "F", "K"], WU: LM.tma2d[LM.bf16, "F", "K"], H: LM.tma2d[LM.bf16, "M", "F"],
                        M: LM.i32, F: LM.i32, K: LM.i32, *, BN=128, BK=64, STAGES=3):
    """silu(X WG^T) * (X WU^T): a pair of CTAs multiplies 256 rows; gate and up lie side by side in tensor memory, two such sets, so that the epilogue of a tile runs beside the next one's products."""
    lm.launch(grid="persistent", cluster=(2, 1))
    lm.assume(K > 0 and K % 8 == 0 and F % 8 == 0)
    ab, bb = 128 * BK * 2, BN // 2 * BK * 2
    pool = lm.smem(STAGES * (ab + 2 * bb) + 2 * 128 * 64 * 2)
    sx = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sg = pool.view(offset=STAGES * ab, shape=(BN // 2, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    su = pool.view(offset=STAGES * (ab + bb), shape=(BN // 2, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    so = pool.view(offset=STAGES * (ab + 2 * bb), shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    gate = lm.tmem(cols=0, width=2 * BN, shape=(128, 2 * BN), dtype=lm.f32)
    up = lm.tmem(cols=2 * BN, width=2 * BN, shape=(128, 2 * BN), dtype=lm.f32)
    tail = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    issue = lm.role(warps=range(5, 6))
    feed = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=feed, prod=[load], cons=[issue], arrive="tx", scope="cluster")
    free = lm.barrier(pipeline=feed, prod=[issue], cons=[load], arrive="mma", primed=True, scope="cluster")
    accs = lm.pipeline(stages=2)
    made = lm.barrier(pipeline=accs, prod=[issue], cons=[tail], arrive="mma", scope="cluster")
    read = lm.barrier(pipeline=accs, prod=[tail], cons=[issue], arrive="warp", primed=True, scope="cluster")
    outs = lm.pipeline(stages=2)
    meet = lm.named_barrier(tail)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(F, BN)), raster="m", swizzle=4, cluster=(2, 1))
    kt = lm.cdiv(K, BK)
    rank = lm.cta_rank()

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(feed)
                lm.wait(free, stage=s)
                sx.tma_load(X, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sg.tma_load(WG, coords=(k * BK, t.n * BN + rank * (BN // 2)), stage=s, barrier=full)
                su.tma_load(WU, coords=(k * BK, t.n * BN + rank * (BN // 2)), stage=s, barrier=full)

    with issue:
        for t in lm.tiles(sched):
            o = lm.step(accs)
            lm.wait(read, stage=o)
            for k in lm.range(kt):
                s = lm.step(feed)
                lm.wait(full, stage=s)
                lm.mma(gate.cols(o.index * BN, BN), sx[s], sg[s], init=(k == 0), ctas=2)
                lm.mma(up.cols(o.index * BN, BN), sx[s], su[s], init=(k == 0), ctas=2)
                lm.commit(free, stage=s)
            lm.commit(made, stage=o)

    with tail:
        for t in lm.tiles(sched):
            o = lm.step(accs)
            lm.wait(made, stage=o)
            for j in lm.static_range(BN // 64):
                g = lm.tmem_load(gate.cols(o.index * BN + 64 * j, 64))
                u = lm.tmem_load(up.cols(o.index * BN + 64 * j, 64))
                lm.tmem_wait("ld")
                if j == BN // 64 - 1:
                    lm.arrive(read, stage=o)
                c = lm.step(outs)
                lm.store_wait(pending=1)
                lm.sync(meet)
                so[c].store(lm.cast(lm.silu(g) * u, lm.bf16))
                lm.fence_proxy()
                lm.sync(meet)
                so[c].tma_store(H, coords=(t.n * BN + 64 * j, t.m * 128))
        lm.store_wait(pending=0)
