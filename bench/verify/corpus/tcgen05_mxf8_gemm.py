"""GEMM of mxfp8 operands for datacentre Blackwell: e4m3 with a ue8m0 scale every 32 elements of K, accumulated in tensor memory."""


@cake.schedule(target=("sm_100a", "sm_103a"))
def tcgen05_mxf8_gemm(lm, A: LM.tma2d[LM.e4m3, "M", "K"], B: LM.tma2d[LM.e4m3, "N", "K"], SA: LM.tma4d[LM.ue8m0, "MB", "KB", 32, 16].const,
                      SB: LM.tma4d[LM.ue8m0, "NB", "KB", 32, 16].const, C: LM.tma2d[LM.bf16, "M", "N"], M: LM.i32, N: LM.i32, K: LM.i32,
                      MB: LM.i32, NB: LM.i32, KB: LM.i32, *, STAGES=3):
    """C = (A SA) (B SB)^T; scales come in atoms of 128 rows and four blocks, ride the ring and are copied in front of the product that reads them."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 128 == 0 and N % 8 == 0)
    lm.assume(KB == K // 128 and MB == lm.cdiv(M, 128) and NB == lm.cdiv(N, 128))
    tile, atom = 128 * 128, 512
    pool = lm.smem(2 * STAGES * tile + 2 * STAGES * atom + 128 * 128 * 2)
    sa = pool.view(offset=0, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    sb = pool.view(offset=STAGES * tile, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=2 * STAGES * tile, shape=(128, 128), dtype=lm.bf16, swizzle="128b")
    ssa = pool.view(offset=2 * STAGES * tile + 128 * 128 * 2, shape=(32, 16), dtype=lm.ue8m0, stage=STAGES)
    ssb = pool.view(offset=2 * STAGES * tile + 128 * 128 * 2 + STAGES * atom, shape=(32, 16), dtype=lm.ue8m0, stage=STAGES)
    accs = lm.tmem(cols=0, width=256, shape=(128, 256), dtype=lm.f32)
    ta = lm.tmem(cols=256, width=4, shape=(128, 16), dtype=lm.ue8m0)
    tb = lm.tmem(cols=260, width=4, shape=(128, 16), dtype=lm.ue8m0)
    epi = lm.role(warps=range(0, 4))
    load = lm.role(warps=[4])
    mma = lm.role(warps=[5])
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[mma], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[mma], cons=[load], arrive="mma", primed=True)
    two = lm.pipeline(stages=2)
    acc_full = lm.barrier(pipeline=two, prod=[mma], cons=[epi], arrive="mma")
    acc_empty = lm.barrier(pipeline=two, prod=[epi], cons=[mma], arrive="warp", primed=True)
    own = lm.named_barrier(epi)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 128)), raster="m", swizzle=8)
    kt = lm.cdiv(K, 128)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sa.tma_load(A, coords=(k * 128, t.m * 128), stage=s, barrier=full)
                sb.tma_load(B, coords=(k * 128, t.n * 128), stage=s, barrier=full)
                ssa.tma_load(SA, coords=(0, 0, k, t.m), stage=s, barrier=full)
                ssb.tma_load(SB, coords=(0, 0, k, t.n), stage=s, barrier=full)

    with mma:
        for t in lm.tiles(sched):
            d = lm.step(two)
            lm.wait(acc_empty, stage=d)
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.tmem_copy(ta, ssa[s])
                lm.tmem_copy(tb, ssb[s])
                lm.mma(accs.cols(128 * d.index, 128), sa[s], sb[s], init=(k == 0),
                       scale_a=lm.scales(ta, block=32, dtype=lm.ue8m0, layout="tmem_128x4"), scale_b=lm.scales(tb, block=32, dtype=lm.ue8m0, layout="tmem_128x4"))
                lm.commit(empty, stage=s)
            lm.commit(acc_full, stage=d)

    with epi:
        for t in lm.tiles(sched):
            d = lm.step(two)
            lm.wait(acc_full, stage=d)
            c = lm.tmem_load(accs.cols(128 * d.index, 128))
            lm.tmem_wait("ld")
            lm.arrive(acc_empty, stage=d)
            lm.store_wait(pending=0)
            lm.sync(own)
            sc.store(lm.cast(c, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            sc.tma_store(C, coords=(t.n * 128, t.m * 128))
        lm.store_wait(pending=0)
