@cake.schedule(target=("sm_80", "sm_89"))
def blocksparse_prefill(lm, q: LM.gmem2d[LM.bf16, "S", "HD"], k: LM.gmem2d[LM.bf16, "S", "HD"], v: LM.gmem2d[LM.bf16, "S", "HD"], indptr: LM.gmem1d[LM.i32, "NP"], cols: LM.gmem1d[LM.i32, "NNZ"],
                        o: LM.gmem2d[LM.bf16, "S", "HD"], S: LM.i32, NH: LM.i32, HD: LM.i32, NP: LM.i32, NNZ: LM.i32, sm: LM.f32, *, D=64, BQ=64, BKV=32):
    """Attention over the blocks of keys that a CSR pattern names for each block of queries (shared by heads), causal inside."""
    lm.launch(grid="tiles")
    lm.assume(HD == NH * D)
    lm.assume(NP == lm.cdiv(S, BQ) + 1)
    lm.assume_values(indptr, 0, NNZ + 1, sorted=True)
    lm.assume_values(cols, 0, lm.cdiv(S, BKV))
    tile = BKV * D * 2
    pool = lm.smem(4 * tile)
    kb = pool.view(offset=0, shape=(BKV, D), dtype=lm.bf16, stage=2, swizzle="128b")
    vb = pool.view(offset=2 * tile, shape=(BKV, D), dtype=lm.bf16, stage=2, swizzle="128b")
    cta = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=2)
    all_in = lm.named_barrier(cta)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(S, BQ), NH), names=("qb", "h"), raster="heavy_first")
    with cta:
        for t in lm.tiles(sched):
            beg = lm.ld(indptr, t.qb)
            end = lm.ld(indptr, t.qb + 1)
            acc = lm.frag(shape=(BQ, D), dtype=lm.f32, form="acc", init=0)
            qf = lm.load(q, coords=(t.h * D, t.qb * BQ), shape=(BQ, D), form="a", like=acc, clip=True)
            mx = lm.rowvec(acc, init=-lm.inf)
            den = lm.rowvec(acc, init=0.0)
            s = lm.step(ring)
            if beg < end:
                first = lm.ld(cols, beg) * BKV
                kb.cp_async(k, coords=(t.h * D, first), stage=s)
                vb.cp_async(v, coords=(t.h * D, first), stage=s)
            lm.cp_commit()
            for i in lm.range(beg, end):
                n = lm.step(ring)
                if i + 1 < end:
                    nxt = lm.ld(cols, i + 1) * BKV
                    kb.cp_async(k, coords=(t.h * D, nxt), stage=n)
                    vb.cp_async(v, coords=(t.h * D, nxt), stage=n)
                lm.cp_commit()
                lm.cp_wait(pending=1)
                lm.sync(all_in)
                c = n.prev()
                w = lm.frag(shape=(BQ, BKV), dtype=lm.f32, form="acc")
                lm.mma(w, qf, kb[c].ldmatrix(form="b"), init=True)
                key = lm.iota(w, 1, base=lm.ld(cols, i) * BKV)
                w = lm.where(key <= lm.iota(w, 0, base=t.qb * BQ) and key < S, w * sm, -lm.inf)
                new = lm.max(mx, lm.reduce(w, "max", axis=1))
                ref = lm.where(new == -lm.inf, 0.0, new)
                fix = lm.exp(mx - ref)
                e = lm.exp(w - ref)
                den = den * fix + lm.sum(e, axis=1)
                acc = acc * fix
                mx = new
                lm.mma(acc, lm.cast(e, lm.bf16, form="a"), vb[c].T.ldmatrix(form="b"))
                lm.sync(all_in)
            lm.cp_wait(pending=0)
            lm.store(o, lm.cast(lm.where(den > 0, acc / den, 0.0), lm.bf16), coords=(t.h * D, t.qb * BQ), clip=True)
