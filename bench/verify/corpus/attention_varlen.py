"""Attention over packed sequences, three math warpgroups of 64 rows; lengths, and so trip counts, are read from memory."""


@cake.schedule(target="sm_90a")
def attention_varlen(lm, Q: LM.tma3d[LM.bf16, "T", "H", "D"], K: LM.tma3d[LM.bf16, "T", "H", "D"], V: LM.tma3d[LM.bf16, "T", "H", "D"],
                     O: LM.tma3d[LM.bf16, "T", "H", "D"], CU: LM.gmem1d[LM.i32, "NS1"].const, T: LM.i32, H: LM.i32, NS: LM.i32, NS1: LM.i32,
                     MAXM: LM.i32, scale_log2: LM.f32, *, D=64, BN=128, STAGES=2):
    """O = softmax(scale Q K^T) V within each sequence CU[b] .. CU[b + 1]; MAXM is the number of 192-row tiles of the longest."""
    lm.launch(grid="persistent")
    lm.assume(NS1 == NS + 1)
    lm.assume_values(CU, 0, T + 1, sorted=True)
    q_bytes, kv_bytes = 192 * D * 2, STAGES * BN * D * 2
    pool = lm.smem(q_bytes + 2 * kv_bytes)
    sq = pool.view(offset=0, shape=(192, D), dtype=lm.bf16, swizzle="128b")
    sk = pool.view(offset=q_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sv = pool.view(offset=q_bytes + kv_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 12), regs=160, members=3)
    load = lm.role(warps=range(12, 16), regs=32)
    qr = lm.pipeline(stages=1)
    q_full = lm.barrier(pipeline=qr, prod=[load], cons=[math], arrive="tx")
    q_empty = lm.barrier(pipeline=qr, prod=[math], cons=[load], arrive="member", primed=True)
    kv = lm.pipeline(stages=STAGES)
    k_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    v_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    k_empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="member", primed=True)
    v_empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(MAXM, H, NS), names=("m", "h", "b"))

    with load:
        for t in lm.tiles(sched):
            bos = lm.ld(CU, t.b)
            eos = lm.ld(CU, t.b + 1)
            if t.m * 192 < eos - bos:
                q = lm.step(qr)
                lm.wait(q_empty, stage=q)
                sq.tma_load(Q, coords=(0, t.h, bos + t.m * 192), stage=q, barrier=q_full, box=(D, 1, 192))
                for j in lm.range(lm.cdiv(eos - bos, BN)):
                    s = lm.step(kv)
                    lm.wait(k_empty, stage=s)
                    sk.tma_load(K, coords=(0, t.h, bos + j * BN), stage=s, barrier=k_full, box=(D, 1, BN))
                    lm.wait(v_empty, stage=s)
                    sv.tma_load(V, coords=(0, t.h, bos + j * BN), stage=s, barrier=v_full, box=(D, 1, BN))

    with math:
        sc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        mine = sq.rows(64 * math.index, 64)
        for t in lm.tiles(sched):
            bos = lm.ld(CU, t.b)
            eos = lm.ld(CU, t.b + 1)
            if t.m * 192 < eos - bos:
                o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", init=0.0)
                m = lm.rowvec(sc, init=-1e30)
                l = lm.rowvec(sc, init=0.0)
                q = lm.step(qr)
                lm.wait(q_full, stage=q)
                for j in lm.range(lm.cdiv(eos - bos, BN)):
                    s = lm.step(kv)
                    lm.wait(k_full, stage=s)
                    lm.mma(sc, mine, sk[s], init=True)
                    lm.mma_wait(pending=0)
                    lm.arrive(k_empty, stage=s)
                    x = lm.where(lm.iota(sc, axis=1, base=j * BN) < eos - bos, sc, -lm.inf)
                    m_new = lm.max(m, lm.reduce(x, "max", axis=1))
                    p = lm.exp2(x * scale_log2 - m_new * scale_log2)
                    fix = lm.exp2((m - m_new) * scale_log2)
                    l = l * fix + lm.reduce(p, "add", axis=1, partial=True)
                    m = m_new
                    o = o * fix
                    pa = lm.cast(p, lm.bf16, form="a")
                    lm.wait(v_full, stage=s)
                    lm.mma(o, pa, sv[s].T)
                    lm.mma_wait(pending=0)
                    lm.arrive(v_empty, stage=s)
                mine.store(lm.cast(o * lm.rcp(lm.finish(l)), lm.bf16))
                lm.fence_proxy()
                lm.sync(own)
                rows = lm.min(64, eos - bos - t.m * 192 - 64 * math.index)
                if rows > 0:
                    mine.tma_store(O, coords=(0, t.h, bos + t.m * 192 + 64 * math.index), box=(D, 1, 64), rows=rows)
                lm.store_wait(pending=0)
                lm.sync(own)                                   # the store has read this member's rows of Q's tile
                lm.arrive(q_empty, stage=q)
