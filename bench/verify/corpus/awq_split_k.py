@cake.schedule(target=("sm_80", "sm_89"))
def awq_split_k(lm, x: LM.gmem2d[LM.f16, "M", "K"], qw: LM.gmem2d[LM.u8, "N", "KHALF"], sc: LM.gmem2d[LM.f16, "G", "N"], zp: LM.gmem2d[LM.u8, "G", "N"], part: LM.gmem3d[LM.f32, "PARTS", "M", "N"],
                M: LM.i32, N: LM.i32, K: LM.i32, KHALF: LM.i32, G: LM.i32, PARTS: LM.i32, *, TM=16, TN=64, TK=64, ST=3):
    """Weights of four bits in groups of 64 along K (low halves: the first 32 of a group, high halves: the rest), zero points of a byte; each CTA takes a share of K."""
    lm.launch(grid="tiles", ctas_per_sm=2)
    lm.assume(K % TK == 0 and K > 0)
    lm.assume(KHALF * 2 == K)
    lm.assume(G * TK == K)
    lm.assume(N % TN == 0)
    lm.assume(PARTS > 0)
    pool = lm.smem(ST * (TM * TK * 2 + TN * TK // 2) + 2 * TN * TK * 2)
    xs = pool.view(offset=0, shape=(TM, TK), dtype=lm.f16, stage=ST, swizzle="128b")
    ws = pool.view(offset=ST * TM * TK * 2, shape=(TN, TK // 2), dtype=lm.u8, stage=ST)
    wd = pool.view(offset=ST * (TM * TK * 2 + TN * TK // 2), shape=(TN, TK), dtype=lm.f16, stage=2, swizzle="128b")
    gang = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=ST)
    wide = lm.pipeline(stages=2)
    meet = lm.named_barrier(gang)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(M, TM), N // TN, PARTS), names=("m", "n", "part"))
    steps = K // TK
    with gang:
        for t in lm.tiles(sched):
            lo = t.part * steps // PARTS
            hi = (t.part + 1) * steps // PARTS
            o = lm.frag(shape=(TM, TN), dtype=lm.f32, form="acc", warps=(1, 4), init=0)
            for i in lm.static_range(ST - 1):
                f = lm.step(ring)
                if lo + i < hi:
                    xs.cp_async(x, coords=((lo + i) * TK, t.m * TM), stage=f)
                    ws.cp_async(qw, coords=((lo + i) * TK // 2, t.n * TN), stage=f)
                lm.cp_commit()
            for g in lm.range(lo, hi):
                lm.cp_wait(pending=ST - 2)
                lm.sync(meet)
                f = lm.step(ring)
                if g + ST - 1 < hi:
                    xs.cp_async(x, coords=((g + ST - 1) * TK, t.m * TM), stage=f)
                    ws.cp_async(qw, coords=((g + ST - 1) * TK // 2, t.n * TN), stage=f)
                lm.cp_commit()
                u = f.prev(ST - 1)
                d = lm.step(wide)
                raw = ws[u].load(form="vec")
                s = lm.cast(lm.load(sc, coords=(t.n * TN, g), shape=(TN,), form="rowvec", like=raw), lm.f32)
                z = lm.cast(lm.load(zp, coords=(t.n * TN, g), shape=(TN,), form="rowvec", like=raw), lm.f32)
                wd[d].cols(0, TK // 2).store(lm.cast((lm.cast(raw & 15, lm.f32) - z) * s, lm.f16))
                wd[d].cols(TK // 2, TK // 2).store(lm.cast((lm.cast(raw >> 4, lm.f32) - z) * s, lm.f16))
                lm.sync(meet)
                lm.mma(o, xs[u].ldmatrix(form="a", like=o), wd[d].ldmatrix(form="b", like=o))
            lm.cp_wait(pending=0)
            lm.store(part, o, coords=(t.n * TN, t.m * TM, t.part), clip=True)
