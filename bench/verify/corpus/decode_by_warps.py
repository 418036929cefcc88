@cake.schedule(target="sm_90a")
def decode_by_warps(lm, Q: LM.gmem3d[LM.bf16, "B", "HQ", 128], K: LM.gmem3d[LM.bf16, "B", "S", 128], V: LM.gmem3d[LM.bf16, "B", "S", 128], lens: LM.gmem1d[LM.i32, "B"], O: LM.gmem3d[LM.bf16, "B", "HQ", 128],
                    B: LM.i32, S: LM.i32, scale_log2: LM.f32, *, HQ=16, WARPS=4, BLK=32):
    """Decode with one KV head: the warps of a CTA share the keys, each with its own softmax, and merge through shared memory at the end."""
    lm.launch(grid="tiles")
    lm.assume_values(lens, 1, S + 1)
    each = BLK * 128 * 2
    pool = lm.smem(2 * WARPS * 2 * each + WARPS * HQ * 4 * 2 + HQ * 128 * 4)
    smem_k = pool.view(offset=0, shape=(WARPS * BLK, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_v = pool.view(offset=2 * WARPS * each, shape=(WARPS * BLK, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_m = pool.view(offset=4 * WARPS * each, shape=(WARPS * HQ,), dtype=lm.f32)
    smem_l = pool.view(offset=4 * WARPS * each + WARPS * HQ * 4, shape=(WARPS * HQ,), dtype=lm.f32)
    smem_o = pool.view(offset=4 * WARPS * each + 2 * WARPS * HQ * 4, shape=(HQ, 128), dtype=lm.f32)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    ring = lm.pipeline(stages=2)
    own = lm.named_barrier(work, per_member=True)
    all_ = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(B,), names=("b",))
    with work:
        scores = lm.frag(shape=(HQ, BLK), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            n = lm.ld(lens, t.b)
            q = lm.load(Q, coords=(0, 0, t.b), shape=(HQ, 128), form="a")
            o = lm.frag(shape=(HQ, 128), dtype=lm.f32, form="acc", init=0)
            m = lm.rowvec(like=scores, init=-lm.inf)
            l = lm.rowvec(like=scores, init=0.0)
            steps = lm.cdiv(n, BLK * WARPS)
            s0 = lm.step(ring)
            smem_k[s0].rows(BLK * work.index, BLK).cp_async(K, coords=(0, BLK * work.index, t.b))
            smem_v[s0].rows(BLK * work.index, BLK).cp_async(V, coords=(0, BLK * work.index, t.b))
            lm.cp_commit()
            for i in lm.range(steps):
                cur = lm.at(ring)
                nxt = lm.step(ring)
                if i + 1 < steps:
                    smem_k[nxt].rows(BLK * work.index, BLK).cp_async(K, coords=(0, ((i + 1) * WARPS + work.index) * BLK, t.b))
                    smem_v[nxt].rows(BLK * work.index, BLK).cp_async(V, coords=(0, ((i + 1) * WARPS + work.index) * BLK, t.b))
                lm.cp_commit()
                lm.cp_wait(pending=1)
                lm.sync(own)
                lm.mma(scores, q, smem_k[cur].rows(BLK * work.index, BLK).load(form="b"), init=True)
                z = lm.where((i * WARPS + work.index) * BLK + lm.iota(scores, 1) < n, scores * scale_log2, -lm.inf)
                m_new = lm.max(m, lm.reduce(z, "max", axis=1))
                base = lm.where(m_new > -lm.inf, m_new, 0.0)
                fix = lm.exp2(m - base)
                w = lm.exp2(z - base)
                l = l * fix + lm.reduce(w, "add", axis=1)
                m = m_new
                o = o * fix
                lm.mma(o, lm.cast(w, lm.bf16, form="a"), smem_v[cur].rows(BLK * work.index, BLK).T.load(form="b"))
                lm.sync(own)
            lm.cp_wait(pending=0)
            smem_m.cols(HQ * work.index, HQ).store(m)
            smem_l.cols(HQ * work.index, HQ).store(l)
            lm.sync(all_)
            top = m
            for j in lm.static_range(WARPS):
                top = lm.max(top, smem_m.cols(HQ * j, HQ).load(form="rowvec", like=o))
            total = lm.rowvec(like=o, init=0.0)
            for j in lm.static_range(WARPS):
                total = total + smem_l.cols(HQ * j, HQ).load(form="rowvec", like=o) * lm.exp2(smem_m.cols(HQ * j, HQ).load(form="rowvec", like=o) - top)
            o = o * (lm.exp2(m - top) * lm.rcp(total))
            for j in lm.static_range(WARPS):
                if work.index == j:
                    if j == 0:
                        smem_o.store(o)
                    else:
                        smem_o.store(smem_o.load(form="acc") + o)
                lm.sync(all_)
            if work.index == 0:
                lm.store(O, lm.cast(smem_o.load(form="acc"), lm.bf16), coords=(0, 0, t.b))
