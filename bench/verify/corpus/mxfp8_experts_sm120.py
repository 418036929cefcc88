"""Rows sorted by expert in mxfp8 on a consumer board: a TMA warp feeds four warps of mma.sync."""


@cake.schedule(target=("sm_120a", "sm_121a"))
def mxfp8_experts_sm120(lm, X: LM.tma2d[LM.e4m3, "T", "K"], SX: LM.gmem2d[LM.u32, "KW", "T"], W: LM.tma3d[LM.e4m3, "E", "N", "K"], SW: LM.gmem3d[LM.u32, "E", "KW", "N"],
                        Y: LM.gmem2d[LM.bf16, "T", "N"], first: LM.gmem1d[LM.i32, "E1"], T: LM.i32, E: LM.i32, E1: LM.i32, N: LM.i32, K: LM.i32, KW: LM.i32,
                        *, BM=64, BN=64, STAGES=3):
    """Experts' up projection in mxfp8 on a consumer board: rows sorted by expert, a TMA warp feeds four warps of mma.sync; words of four scales come straight from memory."""
    lm.launch(grid="persistent")
    lm.assume(K == KW * 128)
    lm.assume(KW > 0 and E1 == E + 1)
    lm.assume_values(first, 0, T + 1, sorted=True)
    pool = lm.smem(STAGES * (BM + BN) * 128)
    smem_x = pool.view(offset=0, shape=(BM, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    smem_w = pool.view(offset=STAGES * BM * 128, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grouped", tiles=lm.cdiv(N, BN), offsets=first, block=BM)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(KW):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                smem_x.tma_load(X, coords=(k * 128, t.row0), stage=s, barrier=full)
                smem_w.tma_load(W, coords=(k * 128, t.n * BN, t.group), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc", warps=(2, 2))
        for t in lm.tiles(sched):
            for k in lm.range(KW):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                a = smem_x[s].ldmatrix(form="a", like=acc)
                b = smem_w[s].ldmatrix(form="b", like=acc)
                lm.arrive(empty, stage=s)
                sx = lm.load(SX, coords=(t.row0, k), shape=(BM,), form="rowvec", like=a, clip=True)
                sw = lm.load(SW, coords=(t.n * BN, k, t.group), shape=(BN,), form="rowvec", like=b, clip=True)
                lm.mma(acc, a, b, init=(k == 0), scale_a=lm.scales(sx, block=32, dtype=lm.ue8m0, layout="frag_row"),
                       scale_b=lm.scales(sw, block=32, dtype=lm.ue8m0, layout="frag_row"))
            lm.store(Y, lm.cast(acc, lm.bf16), coords=(t.n * BN, t.row0), mask=lm.in_bounds(acc, t.rows, N - t.n * BN))
