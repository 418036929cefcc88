@cake.schedule(target="sm_90a")
def mla_two_groups(lm, Q: LM.tma3d[LM.bf16, "B", "H", 576], KV: LM.tma3d[LM.bf16, "PAGES", 64, 576], table: LM.gmem1d[LM.i32, "BP"], lens: LM.gmem1d[LM.i32, "B"],
                   O: LM.gmem3d[LM.bf16, "B", "H", 512], B: LM.i32, H: LM.i32, PAGES: LM.i32, MAXP: LM.i32, BP: LM.i32, scale_log2: LM.f32, *, DV=512, DK=576, STAGES=2):
    """Decode on a latent cache: 64 heads a CTA; `lead` makes the weights and the first half of O, `tail` takes the weights from shared memory for the second half."""
    lm.launch(grid="tiles")
    lm.assume(H % 64 == 0 and BP == B * MAXP)
    lm.assume_values(table, 0, PAGES)
    lm.assume_values(lens, 1, MAXP * 64 + 1)
    q_bytes, kv_bytes = 64 * DK * 2, 64 * DK * 2
    pool = lm.smem(q_bytes + STAGES * kv_bytes + 64 * 64 * 2 + 2 * 64 * 4)
    smem_q = pool.view(offset=0, shape=(64, DK), dtype=lm.bf16, swizzle="128b")
    smem_kv = pool.view(offset=q_bytes, shape=(64, DK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_p = pool.view(offset=q_bytes + STAGES * kv_bytes, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    smem_fix = pool.view(offset=q_bytes + STAGES * kv_bytes + 64 * 64 * 2, shape=(64,), dtype=lm.f32)
    smem_sum = pool.view(offset=q_bytes + STAGES * kv_bytes + 64 * 64 * 2 + 64 * 4, shape=(64,), dtype=lm.f32)
    lead = lm.role(warps=range(0, 4), regs=232)
    tail = lm.role(warps=range(4, 8), regs=208)
    load = lm.role(warps=range(8, 12), regs=40)
    one = lm.pipeline(stages=1)
    q_full = lm.barrier(pipeline=one, prod=[load], cons=[lead], arrive="tx")
    kv = lm.pipeline(stages=STAGES)
    kv_full = lm.barrier(pipeline=kv, prod=[load], cons=[lead, tail], arrive="tx")
    kv_empty = lm.barrier(pipeline=kv, prod=[lead, tail], cons=[load], arrive="member", primed=True)
    hand = lm.pipeline(stages=1)
    p_full = lm.barrier(pipeline=hand, prod=[lead], cons=[tail], arrive="warp")
    p_empty = lm.barrier(pipeline=hand, prod=[tail], cons=[lead], arrive="warp", primed=True)
    end = lm.named_barrier([lead, tail])
    sched = lm.scheduler(kind="grid", tiles=(H // 64, B), names=("h", "b"))

    with load:
        for t in lm.tiles(sched):
            n = lm.ld(lens, t.b)
            q = lm.step(one)
            smem_q.tma_load(Q, coords=(0, t.h * 64, t.b), stage=q, barrier=q_full)
            for p in lm.range(lm.cdiv(n, 64)):
                page = lm.ld(table, t.b * MAXP + p)
                s = lm.step(kv)
                lm.wait(kv_empty, stage=s)
                smem_kv.tma_load(KV, coords=(0, 0, page), stage=s, barrier=kv_full)

    with lead:
        scores = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            n = lm.ld(lens, t.b)
            o = lm.frag(shape=(64, DV // 2), dtype=lm.f32, form="acc", init=0)
            m = lm.rowvec(like=scores, init=-lm.inf)
            l = lm.rowvec(like=scores, init=0.0)
            q = lm.step(one)
            lm.wait(q_full, stage=q)
            for p in lm.range(lm.cdiv(n, 64)):
                s = lm.step(kv)
                lm.wait(kv_full, stage=s)
                lm.mma(scores, smem_q, smem_kv[s], init=True)
                lm.mma_wait(pending=0)
                z = lm.where(p * 64 + lm.iota(scores, 1) < n, scores * scale_log2, -lm.inf)
                m_new = lm.max(m, lm.reduce(z, "max", axis=1))
                fix = lm.exp2(m - m_new)
                w = lm.exp2(z - m_new)
                l = l * fix + lm.reduce(w, "add", axis=1)
                m = m_new
                wb = lm.cast(w, lm.bf16)
                h = lm.step(hand)
                lm.wait(p_empty, stage=h)
                smem_p.store(wb)
                smem_fix.store(fix)
                lm.fence_proxy()
                lm.arrive(p_full, stage=h)
                o = o * fix
                lm.mma(o, lm.cast(w, lm.bf16, form="a"), smem_kv[s].cols(0, DV // 2).T)
                lm.mma_wait(pending=0)
                lm.arrive(kv_empty, stage=s)
            smem_sum.store(l)
            lm.sync(end)
            lm.store(O, lm.cast(o * lm.rcp(l), lm.bf16), coords=(0, t.h * 64, t.b))

    with tail:
        o = lm.frag(shape=(64, DV // 2), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            n = lm.ld(lens, t.b)
            for p in lm.range(lm.cdiv(n, 64)):
                s = lm.step(kv)
                lm.wait(kv_full, stage=s)
                h = lm.step(hand)
                lm.wait(p_full, stage=h)
                fix = smem_fix.load(form="rowvec", like=o)
                if p > 0:
                    o = o * fix
                lm.mma(o, smem_p, smem_kv[s].cols(DV // 2, DV // 2).T, init=(p == 0))
                lm.mma_wait(pending=0)
                lm.arrive(p_empty, stage=h)
                lm.arrive(kv_empty, stage=s)
            lm.sync(end)
            l = smem_sum.load(form="rowvec", like=o)
            lm.store(O, lm.cast(o * lm.rcp(l), lm.bf16), coords=(DV // 2, t.h * 64, t.b))
