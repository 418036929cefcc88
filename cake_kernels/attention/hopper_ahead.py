"""Hopper attention forward, scores a block ahead: Q K^T of the next block runs during the whole softmax of this one, in a second accumulator."""


@cake.schedule(target="sm_90a")
def attention(lm, Q: LM.tma4d[LM.bf16, "B", "H", "S", "D"], K: LM.tma4d[LM.bf16, "B", "HK", "S", "D"], V: LM.tma4d[LM.bf16, "B", "HK", "S", "D"],
              O: LM.tma4d[LM.bf16, "B", "H", "S", "D"], B: LM.i32, H: LM.i32, HK: LM.i32, S: LM.i32, scale_log2: LM.f32,
              *, D=64, MEMBERS=2, BN=128, STAGES=3, QSTAGES=2, CAUSAL=False, GROUP=1, STAGED=False, REGS=240, LOAD_REGS=24):
    """softmax(scale Q K^T) V per (batch, head), keys up to the query's own position if CAUSAL; HK key heads are shared by H / HK query heads.

    Where the exponentials take as long as the tensor core (D = 64), a member must never wait for its own scores: they are issued one block
    early. A tile has at least two blocks, the second of which may be masked as a whole.
    """
    lm.launch(grid="persistent")
    lm.assume(S > 0)
    lm.assume(HK > 0 and H % HK == 0)
    BM = 64 * MEMBERS
    q_bytes, kv_bytes = QSTAGES * BM * D * 2, STAGES * BN * D * 2
    pool = lm.smem(q_bytes + 2 * kv_bytes + (BM * D * 2 if STAGED else 0))
    smem_q = pool.view(offset=0, shape=(BM, D), dtype=lm.bf16, stage=QSTAGES, swizzle="128b")
    smem_k = pool.view(offset=q_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_v = pool.view(offset=q_bytes + kv_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    if STAGED:
        smem_o = pool.view(offset=q_bytes + 2 * kv_bytes, shape=(BM, D), dtype=lm.bf16, swizzle="128b")

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)     # 64 query rows each
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)

    qp = lm.pipeline(stages=QSTAGES)
    q_full = lm.barrier(pipeline=qp, prod=[load], cons=[math], arrive="tx")
    q_empty = lm.barrier(pipeline=qp, prod=[math], cons=[load], arrive="member", primed=True)
    kv = lm.pipeline(stages=STAGES)                                             # one position, two sets of slots
    k_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    k_empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="member", primed=True)
    v_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    v_empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="member", primed=True)
    sp = lm.pipeline(stages=2)                                                  # the two accumulators of scores
    own = lm.named_barrier(math, per_member=True)
    mt = lm.cdiv(S, BM)
    units = lm.cdiv(mt, 2) if CAUSAL else mt
    sched = lm.scheduler(kind="static", tiles=(units, H, B), raster="h" if GROUP > 1 else None, swizzle=GROUP, names=("m", "h", "b"))
    group = H // HK

    with load:
        for t in lm.tiles(sched):
            for half in lm.range(lm.min(2, mt - 2 * t.m) if CAUSAL else 1):
                at = t.m if half == 1 or not CAUSAL else mt - 1 - t.m
                m0 = at * BM
                nblk = lm.max(2, lm.min(lm.cdiv(m0 + BM, BN), lm.cdiv(S, BN)) if CAUSAL else lm.cdiv(S, BN))
                hk = t.h // group
                k = lm.step(kv)
                lm.wait(k_empty, stage=k)
                smem_k.tma_load(K, coords=(0, (nblk - 1) * BN, hk, t.b), stage=k, barrier=k_full)
                sq = lm.step(qp)
                lm.wait(q_empty, stage=sq)
                smem_q.tma_load(Q, coords=(0, m0, t.h, t.b), stage=sq, barrier=q_full)
                for j in lm.range(1, nblk):                                     # right to left: the masked block comes first
                    v = lm.at(kv)
                    k = lm.step(kv)
                    lm.wait(k_empty, stage=k)
                    smem_k.tma_load(K, coords=(0, (nblk - 1 - j) * BN, hk, t.b), stage=k, barrier=k_full)
                    lm.wait(v_empty, stage=v)
                    smem_v.tma_load(V, coords=(0, (nblk - j) * BN, hk, t.b), stage=v, barrier=v_full)
                v = lm.at(kv)
                lm.wait(v_empty, stage=v)
                smem_v.tma_load(V, coords=(0, 0, hk, t.b), stage=v, barrier=v_full)

    with math:
        for t in lm.tiles(sched):
            for half in lm.range(lm.min(2, mt - 2 * t.m) if CAUSAL else 1):
                at = t.m if half == 1 or not CAUSAL else mt - 1 - t.m
                m0 = at * BM
                nblk = lm.max(2, lm.min(lm.cdiv(m0 + BM, BN), lm.cdiv(S, BN)) if CAUSAL else lm.cdiv(S, BN))
                row0 = m0 + 64 * math.index
                sc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", stage=2)
                o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc")
                sq = lm.step(qp)
                lm.wait(q_full, stage=sq)
                q = smem_q[sq].rows(64 * math.index, 64)

                k = lm.step(kv)
                a = lm.step(sp)
                lm.wait(k_full, stage=k)
                lm.mma(sc[a], q, smem_k[k], init=True)
                k = lm.step(kv)
                a = lm.step(sp)
                lm.wait(k_full, stage=k)
                lm.mma(sc[a], q, smem_k[k], init=True)
                lm.mma_wait(pending=1)
                lm.arrive(k_empty, stage=k.prev())
                cols = lm.iota(sc[a.prev()], axis=1, base=(nblk - 1) * BN)
                x = lm.where(cols <= lm.iota(sc[a.prev()], axis=0, base=row0) if CAUSAL else cols < S, sc[a.prev()], -lm.inf)
                m = lm.max(lm.reduce(x, "max", axis=1), -1e30)                  # a row may see no key of this block: no inf - inf
                p = lm.exp2(x * scale_log2 - m * scale_log2)
                l = lm.reduce(p, "add", axis=1, partial=True)                   # finished once a tile
                pa = lm.cast(p, lm.bf16, form="a")
                v = lm.at(kv).prev()
                lm.wait(v_full, stage=v)
                lm.mma(o, pa, smem_v[v].T, init=True)

                for j in lm.range(1, nblk - 1):
                    k = lm.step(kv)
                    a = lm.step(sp)
                    lm.wait(k_full, stage=k)
                    lm.mma(sc[a], q, smem_k[k], init=True)
                    lm.mma_wait(pending=2)                                      # scores that were issued a block ago
                    lm.arrive(k_empty, stage=k.prev())
                    m_new = lm.max(m, lm.reduce(sc[a.prev()], "max", axis=1))
                    p = lm.exp2(sc[a.prev()] * scale_log2 - m_new * scale_log2)
                    fix = lm.exp2(m * scale_log2 - m_new * scale_log2)
                    l = l * fix + lm.reduce(p, "add", axis=1, partial=True)
                    v = k.prev()
                    lm.wait(v_full, stage=v)
                    lm.mma_wait(pending=1)                                      # P V of the block before
                    lm.arrive(v_empty, stage=v.prev())
                    o = o * fix
                    pa = lm.cast(p, lm.bf16, form="a")
                    m = m_new
                    lm.mma(o, pa, smem_v[v].T)

                lm.mma_wait(pending=1)
                lm.arrive(k_empty, stage=lm.at(kv))
                if STAGED:
                    lm.arrive(q_empty, stage=sq)
                cols = lm.iota(sc[a], axis=1)
                x = lm.where(cols <= lm.iota(sc[a], axis=0, base=row0) if CAUSAL else cols < S, sc[a], -lm.inf)     # of a tile with one block
                m_new = lm.max(m, lm.reduce(x, "max", axis=1))
                p = lm.exp2(x * scale_log2 - m_new * scale_log2)
                fix = lm.exp2(m * scale_log2 - m_new * scale_log2)
                l = l * fix + lm.reduce(p, "add", axis=1, partial=True)
                v = lm.at(kv)
                lm.wait(v_full, stage=v)
                lm.mma_wait(pending=0)
                lm.arrive(v_empty, stage=v.prev())
                o = o * fix
                pa = lm.cast(p, lm.bf16, form="a")
                lm.mma(o, pa, smem_v[v].T)
                lm.mma_wait(pending=0)
                lm.arrive(v_empty, stage=v)
                l = lm.finish(l)
                if STAGED:                                                      # the query's slot is free since the last scores
                    out = smem_o.rows(64 * math.index, 64)
                    lm.store_wait(pending=0)
                    lm.sync(own)
                else:
                    out = q                                                     # this member's query rows are read for good
                out.store(lm.cast(o * lm.rcp(l), lm.bf16))
                lm.fence_proxy()
                lm.sync(own)
                out.tma_store(O, coords=(0, row0, t.h, t.b))
                if not STAGED:
                    lm.store_wait(pending=0)
                    lm.sync(own)
                    lm.arrive(q_empty, stage=sq)
                lm.sync(own)                                                    # tells the assembler that a member stays together: addresses stay uniform
        if STAGED:
            lm.store_wait(pending=0)
