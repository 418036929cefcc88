@cake.schedule(target="sm_80")
def sage_int8_scores(lm, Q: LM.gmem3d[LM.i8, "H", "S", 128], K: LM.gmem3d[LM.i8, "H", "N", 128], V: LM.gmem3d[LM.f16, "H", "N", 128], QS: LM.gmem1d[LM.f32, "HQB"], KS: LM.gmem1d[LM.f32, "HKB"], O: LM.gmem3d[LM.f16, "H", "S", 128],
                     H: LM.i32, S: LM.i32, N: LM.i32, HQB: LM.i32, HKB: LM.i32, *, BQ=64, BK=64):
    """Scores of int8 queries and keys with a scale a block (log2(e) and the root of d are in them), weights and values in f16; causal, keys end where queries end. K in two slots, V in one."""
    lm.launch(grid="tiles")
    qb = lm.cdiv(S, BQ)
    kb = lm.cdiv(N, BK)
    lm.assume(HQB == H * qb and HKB == H * kb)
    lm.assume(N >= S and S > 0)
    pool = lm.smem(2 * BK * 128 + BK * 256 + BQ * 128)
    sk = pool.view(offset=0, shape=(BK, 128), dtype=lm.i8, stage=2, swizzle="128b")
    sv = pool.view(offset=2 * BK * 128, shape=(BK, 128), dtype=lm.f16, swizzle="128b")
    sq = pool.view(offset=2 * BK * 128 + BK * 256, shape=(BQ, 128), dtype=lm.i8, swizzle="128b")
    warps = lm.role(warps=range(0, 4))
    cta = lm.named_barrier(warps)
    two = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="grid", tiles=(qb, H), names=("q", "h"), raster="heavy_first")
    with warps:
        for t in lm.tiles(sched):
            diagonal = N - S + t.q * BQ
            last = lm.min(lm.cdiv(diagonal + BQ, BK), kb)
            sq.cp_async(Q, coords=(0, t.q * BQ, t.h), stage=0)
            sk.cp_async(K, coords=(0, 0, t.h), stage=0)
            lm.cp_commit()
            lm.cp_wait(0)
            lm.sync(cta)
            o = lm.frag(shape=(BQ, 128), dtype=lm.f32, form="acc", init=0)
            q = sq.ldmatrix(form="a", like=o)
            best = lm.rowvec(o, init=-lm.inf)
            total = lm.rowvec(o, init=0.0)
            q_scale = lm.ld(QS, t.h * qb + t.q)
            for j in lm.range(last):
                a = lm.step(two)
                sv.cp_async(V, coords=(0, j * BK, t.h), stage=0)
                lm.cp_commit()
                if j + 1 < last:
                    sk.cp_async(K, coords=(0, (j + 1) * BK, t.h), stage=a.prev())
                lm.cp_commit()
                raw = lm.frag(shape=(BQ, BK), dtype=lm.i32, form="acc")
                lm.mma(raw, q, sk[a].ldmatrix(form="b", like=o), init=True)
                z = lm.cast(raw, lm.f32) * (q_scale * lm.ld(KS, t.h * kb + j))
                if (j + 1) * BK > diagonal + 1:
                    key = lm.iota(z, 1, base=j * BK)
                    z = lm.where(key <= lm.iota(z, 0, base=diagonal), z, -lm.inf)
                m = lm.max(best, lm.reduce(z, "max", axis=1))
                p = lm.exp2(z - m)
                fix = lm.exp2(best - m)
                total = total * fix + lm.sum(p, axis=1)
                best = m
                o = o * fix
                lm.cp_wait(1)
                lm.sync(cta)
                lm.mma(o, lm.cast(p, lm.f16, form="a"), sv.T.ldmatrix(form="b", like=o))
                lm.cp_wait(0)
                lm.sync(cta)
            lm.store(O, lm.cast(o * lm.rcp(total), lm.f16), coords=(0, t.q * BQ, t.h), clip=True)
