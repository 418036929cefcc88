"""Sliding-window attention: a block of 64 queries sees the keys of its window only, both roles work out which blocks these are."""


@cake.schedule(target="sm_90a")
def attention_window(lm, Q: LM.tma3d[LM.bf16, "BH", "S", "D"], K: LM.tma3d[LM.bf16, "BH", "S", "D"], V: LM.tma3d[LM.bf16, "BH", "S", "D"],
                     O: LM.gmem3d[LM.bf16, "BH", "S", "D"], BH: LM.i32, S: LM.i32, WIN: LM.i32, scale_log2: LM.f32, *, D=64, BN=64, STAGES=2):
    """Query i attends to the keys j with i - WIN < j <= i."""
    lm.launch(grid="persistent")
    lm.assume(S > 0 and WIN > 0)
    q_bytes, kv_bytes = 64 * D * 2, STAGES * BN * D * 2
    pool = lm.smem(q_bytes + 2 * kv_bytes)
    sq = pool.view(offset=0, shape=(64, D), dtype=lm.bf16, swizzle="128b")
    sk = pool.view(offset=q_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sv = pool.view(offset=q_bytes + kv_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    qr = lm.pipeline(stages=1)
    q_full = lm.barrier(pipeline=qr, prod=[load], cons=[math], arrive="tx")
    q_empty = lm.barrier(pipeline=qr, prod=[math], cons=[load], arrive="member", primed=True)
    kv = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(S, 64), BH), names=("m", "bh"), raster="heavy_first")

    with load:
        for t in lm.tiles(sched):
            q = lm.step(qr)
            lm.wait(q_empty, stage=q)
            sq.tma_load(Q, coords=(0, t.m * 64, t.bh), stage=q, barrier=q_full)
            for j in lm.range(lm.max(t.m * 64 - WIN + 1, 0) // BN, lm.cdiv(lm.min(t.m * 64 + 64, S), BN)):
                s = lm.step(kv)
                lm.wait(empty, stage=s)
                sk.tma_load(K, coords=(0, j * BN, t.bh), stage=s, barrier=full)
                sv.tma_load(V, coords=(0, j * BN, t.bh), stage=s, barrier=full)

    with math:
        sc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", init=0.0)
            m = lm.rowvec(sc, init=-1e30)
            l = lm.rowvec(sc, init=0.0)
            row = lm.iota(sc, axis=0, base=t.m * 64)
            q = lm.step(qr)
            lm.wait(q_full, stage=q)
            for j in lm.range(lm.max(t.m * 64 - WIN + 1, 0) // BN, lm.cdiv(lm.min(t.m * 64 + 64, S), BN)):
                s = lm.step(kv)
                lm.wait(full, stage=s)
                lm.mma(sc, sq, sk[s], init=True)
                lm.mma_wait(pending=0)
                col = lm.iota(sc, axis=1, base=j * BN)
                x = lm.where(col <= row and col > row - WIN, sc, -lm.inf)
                top = lm.max(m, lm.reduce(x, "max", axis=1))
                p = lm.exp2((x - top) * scale_log2)
                fix = lm.exp2((m - top) * scale_log2)
                l = l * fix + lm.reduce(p, "add", axis=1)
                o = o * fix
                m = top
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), sv[s].T)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.arrive(q_empty, stage=q)
            lm.store(O, lm.cast(o * lm.rcp(l), lm.bf16), coords=(0, t.m * 64, t.bh), clip=True)
