@cake.schedule(target=("sm_80", "sm_89"))
def prefix_attention_sm80(lm, Q: LM.gmem4d[LM.f16, "B", "H", "S", 64], K: LM.gmem4d[LM.f16, "B", "H", "L", 64], V: LM.gmem4d[LM.f16, "B", "H", "L", 64], KEEP: LM.gmem2d[LM.i32, "B", "L"],
                          O: LM.gmem4d[LM.f16, "B", "H", "S", 64], B: LM.i32, H: LM.i32, S: LM.i32, L: LM.i32, scale: LM.f32, *, BM=64, BN=64):
    """Cross attention with a key padding mask: the next keys travel while the scores are made, the values of this block while the softmax runs."""
    lm.launch(grid="tiles", ctas_per_sm=2)
    lm.assume(L > 0)
    tile = BN * 64 * 2
    pool = lm.smem(BM * 64 * 2 + 3 * tile)
    qs = pool.view(offset=0, shape=(BM, 64), dtype=lm.f16, swizzle="128b")
    ks = pool.view(offset=BM * 64 * 2, shape=(BN, 64), dtype=lm.f16, stage=2, swizzle="128b")
    vs = pool.view(offset=BM * 64 * 2 + 2 * tile, shape=(BN, 64), dtype=lm.f16, swizzle="128b")
    warps = lm.role(warps=range(0, 4))
    block = lm.named_barrier(warps)
    kring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(S, BM), H, B), names=("m", "h", "b"))
    n = lm.cdiv(L, BN)
    with warps:
        for t in lm.tiles(sched):
            z = lm.frag(shape=(BM, BN), dtype=lm.f32, form="acc")
            o = lm.frag(shape=(BM, 64), dtype=lm.f32, form="acc", init=0.0)
            m = lm.rowvec(z, init=-1e30)
            l = lm.rowvec(z, init=0.0)
            qs.cp_async(Q, coords=(0, t.m * BM, t.h, t.b))
            k0 = lm.step(kring)
            ks.cp_async(K, coords=(0, 0, t.h, t.b), stage=k0)
            lm.cp_commit()
            for j in lm.range(n):
                cur = lm.at(kring)
                lm.cp_wait(pending=0)
                lm.sync(block)
                vs.cp_async(V, coords=(0, j * BN, t.h, t.b))
                lm.cp_commit()
                nxt = lm.step(kring)
                if j + 1 < n:
                    ks.cp_async(K, coords=(0, (j + 1) * BN, t.h, t.b), stage=nxt)
                lm.cp_commit()
                for d in lm.static_range(4):
                    lm.mma(z, qs.cols(16 * d, 16).ldmatrix(form="a", like=z), ks[cur].cols(16 * d, 16).ldmatrix(form="b", like=z), init=(d == 0))
                col = lm.iota(z, axis=1, base=j * BN)
                keep = lm.load(KEEP, coords=(j * BN, t.b), shape=(BN,), form="colvec", like=z, mask=col < L, fill=0)
                x = lm.where(keep != 0, z * scale, -lm.inf)
                peak = lm.max(m, lm.reduce(x, "max", axis=1))
                fix = lm.exp2(m - peak)
                p = lm.exp2(x - peak)
                l = l * fix + lm.sum(p, axis=1)
                m = peak
                o = o * fix
                pa = lm.cast(p, lm.f16, form="a")
                lm.cp_wait(pending=1)
                lm.sync(block)
                lm.mma(o, pa, vs.T.ldmatrix(form="b", like=o))
                lm.sync(block)
            lm.cp_wait(pending=0)
            done = lm.cast(o * lm.rcp(lm.max(l, 1e-20)), lm.f16)
            lm.store(O, done, coords=(0, t.m * BM, t.h, t.b), clip=True)
