"""Attention for GPUs without wgmma: TMA fills the ring, four warps of 16 query rows multiply with mma.sync."""


@cake.schedule(target=("sm_90a", "sm_120a", "sm_121a"))
def attention_mma_sync(lm, Q: LM.tma3d[LM.bf16, "BH", "S", "D"], K: LM.tma3d[LM.bf16, "BH", "S", "D"], V: LM.tma3d[LM.bf16, "BH", "S", "D"],
                       O: LM.tma3d[LM.bf16, "BH", "S", "D"], BH: LM.i32, S: LM.i32, scale_log2: LM.f32, *, D=64, BN=64, STAGES=2):
    """O = softmax(scale Q K^T) V, no mask but the tail's."""
    lm.launch(grid="tiles", ctas_per_sm=2)
    lm.assume(S > 0)
    q_bytes, kv_bytes = 64 * D * 2, STAGES * BN * D * 2
    pool = lm.smem(q_bytes + 2 * kv_bytes)
    sq = pool.view(offset=0, shape=(64, D), dtype=lm.bf16, swizzle="128b")
    sk = pool.view(offset=q_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sv = pool.view(offset=q_bytes + kv_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    qr = lm.pipeline(stages=1)
    q_full = lm.barrier(pipeline=qr, prod=[load], cons=[math], arrive="tx")
    kv = lm.pipeline(stages=STAGES)
    k_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    v_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="warp", primed=True)
    cta = lm.named_barrier(math)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(S, 64), BH), names=("m", "bh"))
    n = lm.cdiv(S, BN)

    with load:
        for t in lm.tiles(sched):
            q = lm.step(qr)
            sq.tma_load(Q, coords=(0, t.m * 64, t.bh), stage=q, barrier=q_full)
            for j in lm.range(n):
                s = lm.step(kv)
                lm.wait(empty, stage=s)
                sk.tma_load(K, coords=(0, j * BN, t.bh), stage=s, barrier=k_full)
                sv.tma_load(V, coords=(0, j * BN, t.bh), stage=s, barrier=v_full)

    with math:
        for t in lm.tiles(sched):
            sc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", warps=(4, 1))
            o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", warps=(4, 1), init=0.0)
            m = lm.rowvec(sc, init=-1e30)
            l = lm.rowvec(sc, init=0.0)
            q = lm.step(qr)
            lm.wait(q_full, stage=q)
            qa = sq.ldmatrix(form="a", like=sc)
            for j in lm.range(n):
                s = lm.step(kv)
                lm.wait(k_full, stage=s)
                lm.mma(sc, qa, sk[s].ldmatrix(form="b", like=sc), init=True)
                x = lm.where(lm.iota(sc, axis=1, base=j * BN) < S, sc, -lm.inf)
                m_new = lm.max(m, lm.reduce(x, "max", axis=1))
                p = lm.exp2(x * scale_log2 - m_new * scale_log2)
                fix = lm.exp2((m - m_new) * scale_log2)
                l = l * fix + lm.reduce(p, "add", axis=1, partial=True)
                m = m_new
                o = o * fix
                lm.wait(v_full, stage=s)
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), sv[s].T.ldmatrix(form="b", like=o))
                lm.arrive(empty, stage=s)
            lm.sync(cta)                                       # every warp has read its rows of Q
            sq.store(lm.cast(o * lm.rcp(lm.finish(l)), lm.bf16))
            lm.fence_proxy()
            lm.sync(cta)
            sq.tma_store(O, coords=(0, t.m * 64, t.bh))
        lm.store_wait(pending=0)
