@cake.schedule(target=("sm_80", "sm_89"))
def skinny_fixup(lm, x: LM.gmem2d[LM.bf16, "M", "K"], w: LM.gmem2d[LM.bf16, "N", "K"], part: LM.gmem3d[LM.f32, "PARTS", "M", "N"], flags: LM.gmem1d[LM.i32, "WORDS"].zeroed,
                 y: LM.gmem2d[LM.bf16, "M", "N"],
                 M: LM.i32, N: LM.i32, K: LM.i32, PARTS: LM.i32, WORDS: LM.i32, *, TM=16, TN=64, TK=64, ST=3):
    """Few rows by a large matrix, K in shares: every share but the last leaves its sums and raises a flag, the last waits for all and adds up."""
    lm.launch(grid="persistent")
    lm.assume(K % 8 == 0)
    lm.assume(PARTS > 0)
    lm.assume(WORDS == PARTS * lm.cdiv(M, TM) * lm.cdiv(N, TN))
    pool = lm.smem(ST * (TM + TN) * TK * 2)
    xs = pool.view(offset=0, shape=(TM, TK), dtype=lm.bf16, stage=ST, swizzle="128b")
    ws = pool.view(offset=ST * TM * TK * 2, shape=(TN, TK), dtype=lm.bf16, stage=ST, swizzle="128b")
    all4 = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=ST)
    bar = lm.named_barrier(all4)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, TM), lm.cdiv(N, TN), PARTS), names=("m", "n", "p"))
    blocks = lm.cdiv(K, TK)
    mt = lm.cdiv(M, TM)
    nt = lm.cdiv(N, TN)
    with all4:
        for t in lm.tiles(sched):
            lo = t.p * blocks // PARTS
            hi = (t.p + 1) * blocks // PARTS
            o = lm.frag(shape=(TM, TN), dtype=lm.f32, form="acc", warps=(1, 4), init=0)
            for i in lm.static_range(ST - 1):
                s = lm.step(ring)
                if lo + i < hi:
                    xs.cp_async(x, coords=((lo + i) * TK, t.m * TM), stage=s)
                    ws.cp_async(w, coords=((lo + i) * TK, t.n * TN), stage=s)
                lm.cp_commit()
            for k in lm.range(lo, hi):
                lm.cp_wait(pending=ST - 2)
                lm.sync(bar)
                s = lm.step(ring)
                if k + ST - 1 < hi:
                    xs.cp_async(x, coords=((k + ST - 1) * TK, t.m * TM), stage=s)
                    ws.cp_async(w, coords=((k + ST - 1) * TK, t.n * TN), stage=s)
                lm.cp_commit()
                u = s.prev(ST - 1)
                lm.mma(o, xs[u].ldmatrix(form="a", like=o), ws[u].ldmatrix(form="b", like=o))
            lm.cp_wait(pending=0)
            lm.sync(bar)
            at = t.n * mt + t.m
            if t.p < PARTS - 1:
                lm.store(part, o, coords=(t.n * TN, t.m * TM, t.p), clip=True)
                lm.signal(flags, t.p * mt * nt + at, 1)
            else:
                for p in lm.range(PARTS - 1):
                    lm.spin(flags, p * mt * nt + at, 1)
                    o = o + lm.load(part, coords=(t.n * TN, t.m * TM, p), shape=(TM, TN), form="acc", like=o, clip=True)
                lm.store(y, lm.cast(o, lm.bf16), coords=(t.n * TN, t.m * TM), clip=True)
