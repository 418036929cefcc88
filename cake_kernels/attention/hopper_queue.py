"""Hopper attention forward, tiles drawn from a counter, long ones first: with a causal mask all CTAs end together."""


@cake.schedule(target="sm_90a")
def attention(lm, Q: LM.tma4d[LM.bf16, "B", "H", "S", "D"], K: LM.tma4d[LM.bf16, "B", "HK", "S", "D"], V: LM.tma4d[LM.bf16, "B", "HK", "S", "D"],
              O: LM.tma4d[LM.bf16, "B", "H", "S", "D"], B: LM.i32, H: LM.i32, HK: LM.i32, S: LM.i32, scale_log2: LM.f32,
              NEXT: LM.gmem1d[LM.i32, 1].zeroed, *, D=128, MEMBERS=2, BN=128, STAGES=2, QSTAGES=2, CAUSAL=True, PINGPONG=True, GROUP=4, STAGED=False, LATE=False, REGS=232, LOAD_REGS=40):
    """softmax(scale Q K^T) V per (batch, head), keys up to the query's own position if CAUSAL; HK key heads are shared by H / HK query heads.

    Tiles of GROUP heads run together, so that their keys and values stay in the second-level cache; of these the last rows come first.
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
    if PINGPONG:
        turn = lm.turns(math)
    own = lm.named_barrier(math, per_member=True)
    mt = lm.cdiv(S, BM)
    sched = lm.scheduler(kind="counter", tiles=(mt, H, B), raster="h", swizzle=GROUP, names=("m", "h", "b"), counter=NEXT, fetch=load)
    group = H // HK

    with load:
        for t in lm.tiles(sched):
            m0 = (mt - 1 - t.m) * BM
            nblk = lm.min(lm.cdiv(m0 + BM, BN), lm.cdiv(S, BN)) if CAUSAL else lm.cdiv(S, BN)
            hk = t.h // group
            s = lm.step(kv)
            lm.wait(k_empty, stage=s)
            smem_k.tma_load(K, coords=(0, (nblk - 1) * BN, hk, t.b), stage=s, barrier=k_full)
            sq = lm.step(qp)
            lm.wait(q_empty, stage=sq)
            smem_q.tma_load(Q, coords=(0, m0, t.h, t.b), stage=sq, barrier=q_full)
            for j in lm.range(1, nblk):                                     # right to left: the masked block comes first
                sv = lm.at(kv)
                s = lm.step(kv)
                lm.wait(k_empty, stage=s)
                smem_k.tma_load(K, coords=(0, (nblk - 1 - j) * BN, hk, t.b), stage=s, barrier=k_full)
                lm.wait(v_empty, stage=sv)
                smem_v.tma_load(V, coords=(0, (nblk - j) * BN, hk, t.b), stage=sv, barrier=v_full)
            sv = lm.at(kv)
            lm.wait(v_empty, stage=sv)
            smem_v.tma_load(V, coords=(0, 0, hk, t.b), stage=sv, barrier=v_full)

    with math:
        for t in lm.tiles(sched):
            m0 = (mt - 1 - t.m) * BM
            nblk = lm.min(lm.cdiv(m0 + BM, BN), lm.cdiv(S, BN)) if CAUSAL else lm.cdiv(S, BN)
            row0 = m0 + 64 * math.index
            sc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
            o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", init=0.0)
            sq = lm.step(qp)
            lm.wait(q_full, stage=sq)
            q = smem_q[sq].rows(64 * math.index, 64)

            s = lm.step(kv)
            lm.wait(k_full, stage=s)
            lm.mma(sc, q, smem_k[s], init=True)
            lm.mma_wait(pending=0)
            lm.arrive(k_empty, stage=s)
            cols = lm.iota(sc, axis=1, base=(nblk - 1) * BN)
            sc = lm.where(cols <= lm.iota(sc, axis=0, base=row0) if CAUSAL else cols < S, sc, -lm.inf)  # rows beyond S see anything: they are not stored
            m = lm.reduce(sc, "max", axis=1)
            if CAUSAL and BN % BM != 0:
                m = lm.max(m, -1e30)                                        # a row may see no key of this block: no inf - inf
            p = lm.exp2(sc * scale_log2 - m * scale_log2)
            l = lm.reduce(p, "add", axis=1, partial=True)                   # finished once a tile
            pa = lm.cast(p, lm.bf16, form="a")
            if LATE:
                lm.wait(v_full, stage=s)

            for j in lm.range(1, nblk):
                sv = lm.at(kv)                                              # V of the block before
                s = lm.step(kv)
                lm.wait(k_full, stage=s)
                if PINGPONG:
                    lm.wait(turn)
                lm.mma(sc, q, smem_k[s], init=True)
                if not LATE:
                    lm.wait(v_full, stage=sv)
                lm.mma(o, pa, smem_v[sv].T)
                if PINGPONG:
                    lm.arrive(turn)                                         # another member issues while this one does its softmax
                lm.mma_wait(pending=1)                                      # the scores are there, P V still runs
                lm.arrive(k_empty, stage=s)
                if CAUSAL and BN % BM != 0:
                    sc = lm.where(lm.iota(sc, axis=1, base=(nblk - 1 - j) * BN) <= lm.iota(sc, axis=0, base=row0), sc, -lm.inf)
                m_new = lm.max(m, lm.reduce(sc, "max", axis=1))
                p = lm.exp2(sc * scale_log2 - m_new * scale_log2)
                fix = lm.exp2(m * scale_log2 - m_new * scale_log2)
                l = l * fix + lm.reduce(p, "add", axis=1, partial=True)
                if LATE:
                    lm.wait(v_full, stage=s)                                # the assembler does not move the next wait in front of this one
                lm.mma_wait(pending=0)
                lm.arrive(v_empty, stage=sv)
                o = o * fix
                pa = lm.cast(p, lm.bf16, form="a")
                m = m_new

            if STAGED:
                lm.arrive(q_empty, stage=sq)
            s = lm.at(kv)
            if not LATE:
                lm.wait(v_full, stage=s)
            lm.mma(o, pa, smem_v[s].T)
            lm.mma_wait(pending=0)
            lm.arrive(v_empty, stage=s)
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
        if STAGED:
            lm.store_wait(pending=0)


@cake.plan()
def forward(lm, Q: LM.tma4d[LM.bf16], K: LM.tma4d[LM.bf16], V: LM.tma4d[LM.bf16], O: LM.tma4d[LM.bf16], B: LM.i32, H: LM.i32, HK: LM.i32, S: LM.i32,
            scale_log2: LM.f32, *, D=128, MEMBERS=2, BN=128, STAGES=2, QSTAGES=2, CAUSAL=True, PINGPONG=True, GROUP=4, STAGED=False, LATE=False, REGS=232, LOAD_REGS=40):
    NEXT = lm.workspace(shape=(1,), dtype=lm.i32)
    lm.zero(NEXT)
    lm.run(attention, Q=Q, K=K, V=V, O=O, B=B, H=H, HK=HK, S=S, scale_log2=scale_log2, NEXT=NEXT, D=D, MEMBERS=MEMBERS, BN=BN, STAGES=STAGES, QSTAGES=QSTAGES, CAUSAL=CAUSAL, PINGPONG=PINGPONG, GROUP=GROUP, STAGED=STAGED, LATE=LATE, REGS=REGS, LOAD_REGS=LOAD_REGS)
