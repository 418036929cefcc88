"""Ada: everything in e4m3. V lies transposed in the cache, so that its tokens are K of the second product; weights are quantised in registers, times 256."""
@cake.schedule(target="sm_89")
def fp8_flash_vt_cache(lm, Q: LM.gmem3d[LM.e4m3, "H", "S", 64], K: LM.gmem3d[LM.e4m3, "HK", "N", 64], VT: LM.gmem3d[LM.e4m3, "HK", 64, "N"], O: LM.gmem3d[LM.bf16, "H", "S", 64], H: LM.i32, HK: LM.i32, S: LM.i32, N: LM.i32, qk: LM.f32, vs: LM.f32, *, BKV=64):
    lm.launch(grid="tiles", ctas_per_sm=2)
    lm.assume(N > 0 and N % 16 == 0)
    lm.assume(H % HK == 0)
    pool = lm.smem(5 * 64 * 64)
    ks = pool.view(offset=0, shape=(BKV, 64), dtype=lm.e4m3, stage=2, swizzle="64b")
    vs_ = pool.view(offset=2 * 64 * BKV, shape=(64, BKV), dtype=lm.e4m3, stage=2, swizzle="64b")
    qs = pool.view(offset=4 * 64 * BKV, shape=(64, 64), dtype=lm.e4m3, swizzle="64b")
    g = lm.role(warps=range(0, 4))
    meet = lm.named_barrier(g)
    ring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(S, 64), H), names=("q", "h"))
    blocks = lm.cdiv(N, BKV)
    with g:
        for t in lm.tiles(sched):
            hk = t.h * HK // H
            qs.cp_async(Q, coords=(0, t.q * 64, t.h), stage=0)
            ks.cp_async(K, coords=(0, 0, hk), stage=0)
            lm.cp_commit()
            vs_.cp_async(VT, coords=(0, 0, hk), stage=0)
            lm.cp_commit()
            o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0)
            m = lm.rowvec(o, init=-lm.inf)
            l = lm.rowvec(o, init=0.0)
            for j in lm.range(blocks):
                s = lm.step(ring)
                lm.cp_wait(1)
                lm.sync(meet)
                z = lm.frag(shape=(64, BKV), dtype=lm.f32, form="acc")
                lm.mma(z, qs.ldmatrix(form="a", like=o), ks[s].ldmatrix(form="b", like=o), init=True)
                if j + 1 < blocks:
                    ks.cp_async(K, coords=(0, (j + 1) * BKV, hk), stage=s.prev())
                lm.cp_commit()
                z = lm.where(lm.iota(z, 1, base=j * BKV) < N, z * qk, -lm.inf)
                top = lm.max(m, lm.reduce(z, "max", axis=1))
                fix = lm.exp2(m - top)
                p = lm.exp2(z - top)
                l = l * fix + lm.sum(p, axis=1)
                o = o * fix
                m = top
                lm.cp_wait(1)
                lm.sync(meet)
                lm.mma(o, lm.cast(lm.cast(p * 256.0, lm.e4m3), lm.e4m3, form="a"), vs_[s].ldmatrix(form="b", like=o))
                if j + 1 < blocks:
                    vs_.cp_async(VT, coords=((j + 1) * BKV, 0, hk), stage=s.prev())
                lm.cp_commit()
            lm.cp_wait(0)
            lm.store(O, lm.cast(o * (vs / 256.0) / l, lm.bf16), coords=(0, t.q * 64, t.h), clip=True)
