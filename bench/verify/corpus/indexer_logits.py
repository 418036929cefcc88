@cake.schedule(target="sm_90a")
def indexer_logits(lm, Q: LM.tma3d[LM.e4m3, "TOK", 64, 128], KV: LM.tma2d[LM.e4m3, "L", 128], KS: LM.tma1d[LM.f32, "L"], WT: LM.gmem2d[LM.f32, "TOK", 64], FROM: LM.gmem1d[LM.i32, "TOK"], UPTO: LM.gmem1d[LM.i32, "TOK"],
                   OUT: LM.gmem2d[LM.f32, "TOK", "L"], TOK: LM.i32, L: LM.i32, *, BN=128, STAGES=4):
    """Weighted relu scores of 64 light heads: two tokens a CTA, one a warpgroup, over the blocks of keys that either of them may see."""
    lm.launch(grid="persistent")
    lm.assume(L > 0 and L % 4 == 0)
    lm.assume_values(FROM, 0, L)
    lm.assume_values(UPTO, 0, L + 1)
    kb = BN * 128
    pool = lm.smem(2 * 64 * 128 + STAGES * (kb + 512))
    qs = pool.view(offset=0, shape=(64, 128), dtype=lm.e4m3, stage=2, swizzle="128b")
    ks = pool.view(offset=2 * 64 * 128, shape=(BN, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    sc = pool.view(offset=2 * 64 * 128 + STAGES * kb, shape=(BN,), dtype=lm.f32, stage=STAGES)
    heads = lm.role(warps=range(0, 8), regs=232, members=2)
    fetch = lm.role(warps=range(8, 12), regs=40)
    qr = lm.pipeline(stages=1)
    q_full = lm.barrier(pipeline=qr, prod=[fetch], cons=[heads], arrive="tx")
    q_free = lm.barrier(pipeline=qr, prod=[heads], cons=[fetch], arrive="member", primed=True)
    kr = lm.pipeline(stages=STAGES)
    k_full = lm.barrier(pipeline=kr, prod=[fetch], cons=[heads], arrive="tx")
    k_free = lm.barrier(pipeline=kr, prod=[heads], cons=[fetch], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(TOK, 2),), names=("pair",))

    with fetch:
        for t in lm.tiles(sched):
            a, b = 2 * t.pair, lm.min(2 * t.pair + 1, TOK - 1)
            lo = lm.min(lm.ld(FROM, a), lm.ld(FROM, b)) // BN
            hi = lm.cdiv(lm.max(lm.ld(UPTO, a), lm.ld(UPTO, b)), BN)
            z = lm.step(qr)
            lm.wait(q_free, stage=z)
            qs[0].tma_load(Q, coords=(0, 0, a), stage=z, barrier=q_full)
            qs[1].tma_load(Q, coords=(0, 0, b), stage=z, barrier=q_full)
            for j in lm.range(lo, hi):
                s = lm.step(kr)
                lm.wait(k_free, stage=s)
                ks.tma_load(KV, coords=(0, j * BN), stage=s, barrier=k_full)
                sc.tma_load(KS, coords=(j * BN,), stage=s, barrier=k_full)

    with heads:
        acc = lm.frag(shape=(BN, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            a, b = 2 * t.pair, lm.min(2 * t.pair + 1, TOK - 1)
            mine = 2 * t.pair + heads.index
            me = lm.min(mine, TOK - 1)
            lo = lm.min(lm.ld(FROM, a), lm.ld(FROM, b)) // BN
            hi = lm.cdiv(lm.max(lm.ld(UPTO, a), lm.ld(UPTO, b)), BN)
            first, end = lm.ld(FROM, me), lm.ld(UPTO, me)
            w = lm.load(WT, coords=(0, me), shape=(64,), form="colvec", like=acc)
            z = lm.step(qr)
            lm.wait(q_full, stage=z)
            for j in lm.range(lo, hi):
                s = lm.step(kr)
                lm.wait(k_full, stage=s)
                lm.mma(acc, ks[s], qs[heads.index], init=True)
                scale = sc[s].load(form="rowvec", like=acc)
                lm.mma_wait(pending=0)
                lm.arrive(k_free, stage=s)
                score = lm.sum(lm.max(acc, 0.0) * w, axis=1) * scale
                key = lm.iota(acc, axis=0, base=j * BN)
                if mine < TOK:
                    lm.store(OUT, lm.where((key >= first) & (key < end), score, -lm.inf), coords=(j * BN, me), mask=key < L)
            lm.arrive(q_free, stage=z)
