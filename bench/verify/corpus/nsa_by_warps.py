@cake.schedule(target="sm_90a")
def nsa_by_warps(lm, Q: LM.gmem3d[LM.bf16, "T", "HQ", 128], K: LM.gmem3d[LM.bf16, "HKV", "T", 128], V: LM.gmem3d[LM.bf16, "HKV", "T", 128], sel: LM.gmem1d[LM.i32, "SEL"],
                 O: LM.gmem3d[LM.bf16, "T", "HQ", 128], T: LM.i32, HQ: LM.i32, HKV: LM.i32, SEL: LM.i32, scale_log2: LM.f32, *, NSEL=4, BLK=64):
    """Attention of one token's 16 heads of a KV head over the blocks that were selected for it; a warp a token, -1 means no block."""
    lm.launch(grid="tiles")
    lm.assume(HQ == HKV * 16 and SEL == HKV * T * NSEL)
    each = BLK * 128 * 2
    pool = lm.smem(8 * each)
    smem_k = pool.view(offset=0, shape=(4 * BLK, 128), dtype=lm.bf16, swizzle="128b")
    smem_v = pool.view(offset=4 * each, shape=(4 * BLK, 128), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4), members=4)
    own = lm.named_barrier(work, per_member=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(T, 4), HKV), names=("q", "h"))
    with work:
        k_tile = smem_k.rows(BLK * work.index, BLK)
        v_tile = smem_v.rows(BLK * work.index, BLK)
        scores = lm.frag(shape=(16, BLK), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            tok = t.q * 4 + work.index
            if tok < T:
                q = lm.load(Q, coords=(0, t.h * 16, tok), shape=(16, 128), form="a")
                o = lm.frag(shape=(16, 128), dtype=lm.f32, form="acc", init=0)
                m = lm.rowvec(like=scores, init=-lm.inf)
                l = lm.rowvec(like=scores, init=0.0)
                for i in lm.range(NSEL):
                    blk = lm.ld(sel, (t.h * T + tok) * NSEL + i)
                    if blk >= 0 and blk * BLK <= tok:
                        k_tile.cp_async(K, coords=(0, blk * BLK, t.h))
                        lm.cp_commit()
                        v_tile.cp_async(V, coords=(0, blk * BLK, t.h))
                        lm.cp_commit()
                        lm.cp_wait(pending=1)
                        lm.sync(own)
                        lm.mma(scores, q, k_tile.load(form="b"), init=True)
                        z = lm.where(blk * BLK + lm.iota(scores, 1) <= tok, scores * scale_log2, -lm.inf)
                        m_new = lm.max(m, lm.reduce(z, "max", axis=1))
                        fix = lm.exp2(m - m_new)
                        w = lm.exp2(z - m_new)
                        l = l * fix + lm.reduce(w, "add", axis=1)
                        m = m_new
                        o = o * fix
                        lm.cp_wait(pending=0)
                        lm.sync(own)
                        lm.mma(o, lm.cast(w, lm.bf16, form="a"), v_tile.T.load(form="b"))
                        lm.sync(own)
                lm.store(O, lm.cast(o * lm.rcp(l), lm.bf16), coords=(0, t.h * 16, tok))
