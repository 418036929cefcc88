@cake.schedule(target="sm_90a")
def qkv_rope_epilogue(lm, X: LM.tma2d[LM.bf16, "T", "HID"], W: LM.tma2d[LM.bf16, "WN", "HID"], POS: LM.gmem1d[LM.i32, "T"].const,
                      COS: LM.gmem2d[LM.f32, "P", 64].const, SIN: LM.gmem2d[LM.f32, "P", 64].const,
                      Q: LM.tma2d[LM.bf16, "T", "QN"], KO: LM.tma2d[LM.bf16, "T", "KN"], V: LM.tma2d[LM.bf16, "T", "KN"],
                      T: LM.i32, HID: LM.i32, WN: LM.i32, QN: LM.i32, KN: LM.i32, HQ: LM.i32, HK: LM.i32, P: LM.i32, *, BK=64, STAGES=4):
    """One head of q, k or v a tile: the projection, the rotation of its two halves at the token's position, and the store into its own tensor."""
    lm.launch(grid="persistent")
    lm.assume(HID > 0 and HID % 8 == 0 and HQ > 0 and HK > 0)
    lm.assume(QN == HQ * 128 and KN == HK * 128 and WN == QN + 2 * KN)
    lm.assume_values(POS, 0, P)
    pool = lm.smem(STAGES * 2 * 128 * BK * 2 + 128 * 128 * 2)
    sx = pool.view(offset=0, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sw = pool.view(offset=STAGES * 128 * BK * 2, shape=(128, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out = pool.view(offset=2 * STAGES * 128 * BK * 2, shape=(128, 128), dtype=lm.bf16, swizzle="128b")
    head = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[head], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[head], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(head, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(T, 128), HQ + 2 * HK), names=("m", "h"))
    steps = lm.cdiv(HID, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(steps):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                sx.tma_load(X, coords=(k * BK, t.m * 128), stage=s, barrier=full)
                sw.tma_load(W, coords=(k * BK, t.h * 128), stage=s, barrier=full)

    with head:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        rows = out.rows(64 * head.index, 64)
        for t in lm.tiles(sched):
            row0 = t.m * 128 + 64 * head.index
            for k in lm.range(steps):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, sx[s].rows(64 * head.index, 64), sw[s], init=(k == 0))
                lm.mma_wait(pending=1)
                if k > 0:
                    lm.arrive(empty, stage=s.prev())
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=lm.at(ring))

            lm.store_wait(pending=0)
            lm.sync(own)
            if t.h < HQ + HK:
                lo, hi = acc.cols(0, 64), acc.cols(64, 64)
                valid = lm.iota(lo, axis=0, base=row0) < T
                at = lm.load(POS, coords=(row0,), shape=(64,), form="rowvec", like=lo, mask=valid)
                c = lm.load(COS, coords=(0, at), shape=(64, 64), form="acc", like=lo)
                n = lm.load(SIN, coords=(0, at), shape=(64, 64), form="acc", like=lo)
                rows.cols(0, 64).store(lm.cast(lo * c - hi * n, lm.bf16))
                rows.cols(64, 64).store(lm.cast(hi * c + lo * n, lm.bf16))
            else:
                rows.store(lm.cast(acc, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            if t.h < HQ:
                rows.tma_store(Q, coords=(t.h * 128, row0))
            elif t.h < HQ + HK:
                rows.tma_store(KO, coords=((t.h - HQ) * 128, row0))
            else:
                rows.tma_store(V, coords=((t.h - HQ - HK) * 128, row0))
        lm.store_wait(pending=0)
