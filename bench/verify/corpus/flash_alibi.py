"""FlashAttention-2 on Ampere: one buffer each for K and V, which are fetched while the other is multiplied; linear biases."""


@cake.schedule(target="sm_80")
def flash_alibi(lm, Q: LM.gmem3d[LM.f16, "BH", "S", "D"], K: LM.gmem3d[LM.f16, "BH", "S", "D"], V: LM.gmem3d[LM.f16, "BH", "S", "D"],
                slopes: LM.gmem1d[LM.f32, "BH"], O: LM.gmem3d[LM.f16, "BH", "S", "D"], BH: LM.i32, S: LM.i32, scale_log2: LM.f32, *, D=64, BM=64, BN=64):
    """Causal attention with linear biases in the manner of FlashAttention-2: one buffer each for K and V, one is fetched while the other is multiplied."""
    lm.launch(grid="tiles", ctas_per_sm=2)
    lm.assume(S > 0)
    pool = lm.smem((BM + 2 * BN) * D * 2)
    smem_q = pool.view(offset=0, shape=(BM, D), dtype=lm.f16, swizzle="128b")
    smem_k = pool.view(offset=BM * D * 2, shape=(BN, D), dtype=lm.f16, swizzle="128b")
    smem_v = pool.view(offset=(BM + BN) * D * 2, shape=(BN, D), dtype=lm.f16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(S, BM), BH), names=("m", "h"), raster="heavy_first")
    with work:
        o = lm.frag(shape=(BM, D), dtype=lm.f32, form="acc")
        s = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            row0 = t.m * BM
            slope = lm.ld(slopes, t.h)
            smem_q.cp_async(Q, coords=(0, row0, t.h))
            smem_k.cp_async(K, coords=(0, 0, t.h))
            lm.cp_commit()
            n = lm.cdiv(lm.min(row0 + BM, S), BN)
            o = lm.frag(shape=(BM, D), dtype=lm.f32, form="acc", init=0)
            top = lm.rowvec(like=s, init=-lm.inf)
            total = lm.rowvec(like=s, init=0.0)
            for j in lm.range(n):
                lm.cp_wait(pending=0)
                lm.sync(meet)
                smem_v.cp_async(V, coords=(0, j * BN, t.h))
                lm.cp_commit()
                q = smem_q.ldmatrix(form="a")
                k = smem_k.ldmatrix(form="b")
                lm.mma(s, q, k, init=True)
                lm.cp_wait(pending=0)
                lm.sync(meet)
                if j + 1 < n:
                    smem_k.cp_async(K, coords=(0, (j + 1) * BN, t.h))
                lm.cp_commit()
                row = lm.iota(s, 0, base=row0)
                col = lm.iota(s, 1, base=j * BN)
                away = lm.cast(col - row, lm.f32)
                z = lm.where(col <= row, s * scale_log2 + slope * away, -lm.inf)
                peak = lm.max(top, lm.reduce(z, "max", axis=1))
                fix = lm.exp2(top - peak)
                p = lm.exp2(z - peak)
                total = total * fix + lm.reduce(p, "add", axis=1)
                top = peak
                o = o * fix
                v = smem_v.T.ldmatrix(form="b")
                lm.mma(o, lm.cast(p, lm.f16, form="a"), v)
            lm.store(O, lm.cast(o * lm.rcp(total), lm.f16), coords=(0, row0, t.h), clip=True)
