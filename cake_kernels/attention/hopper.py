"""Hopper attention forward: query rows split over math members, Q K^T of the next block issued before P V of the last one."""


@cake.schedule(target="sm_90a")
def attention(lm, Q: LM.tma4d[LM.bf16, "B", "H", "S", "D"], K: LM.tma4d[LM.bf16, "B", "HK", "S", "D"], V: LM.tma4d[LM.bf16, "B", "HK", "S", "D"],
              O: LM.tma4d[LM.bf16, "B", "H", "S", "D"], B: LM.i32, H: LM.i32, HK: LM.i32, S: LM.i32, scale_log2: LM.f32,
              *, D=128, MEMBERS=2, BN=128, STAGES=2, QSTAGES=1, CAUSAL=False, STAGED=False, SKIP=False,
              LAG=False, SPLIT=32, MARGIN=24.0, POLY=0, DEAL=0, REGS=232, LOAD_REGS=40):
    """softmax(scale Q K^T) V per (batch, head), keys up to the query's own position if CAUSAL; HK key heads are shared by H / HK query heads.

    With LAG weights are taken relative to a reference that only moves where a score outgrows it by MARGIN (in powers of two), which a vote
    over signs finds: no row maximum, no shuffle and no rescaling in an ordinary block. Any reference gives the same quotient. The first SPLIT
    columns of a block are voted on apart: the others' vote is in the shade of their exponentials.
    With a causal mask a unit of work is the n-th tile of a head from the end and the n-th from the start: all units take equally long.
    """
    lm.launch(grid="persistent")
    lm.assume(S > 0)
    lm.assume(HK > 0 and H % HK == 0)
    BM = 64 * MEMBERS
    LAGS = LAG and (not CAUSAL or BN % BM == 0 or (SKIP and BN % 64 == 0))      # a row's reference is a score of its own: it sees a key of its first block
    TAIL = POLY if LAGS else 0
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
    turn = lm.turns(math)
    own = lm.named_barrier(math, per_member=True)
    mt = lm.cdiv(S, BM)
    units = lm.cdiv(mt, 2) if CAUSAL else mt
    group = H // HK
    if DEAL:
        odd = mt % 2
        heads = H * B
        late = lm.min(heads, lm.cdiv(DEAL, units))
        pairs = (heads - late) * units
        items = pairs + late * mt
        sched = lm.scheduler(kind="static", tiles=(items,), names=("w",), deal="snake")
    else:
        sched = lm.scheduler(kind="static", tiles=(units, H, B), names=("m", "h", "b"))

    with load:
        for t in lm.tiles(sched):
            if DEAL:
                twin = t.w < pairs
                x = t.w if twin else t.w - pairs
                over = units if twin else late
                across, down = x // over, x % over
                flat = across if twin else heads - late + down
                b, h = flat // H, flat % H
                last, first = mt - 1 - (down if twin else across), down - odd
                parts = 2 if twin and first >= 0 else 1
            else:
                b, h = t.b, t.h
                last, first = mt - 1 - t.m, t.m
                parts = lm.min(2, mt - 2 * t.m) if CAUSAL else 1
            for half in lm.range(parts):
                at = first if half == 1 or not CAUSAL else last
                m0 = at * BM
                nblk = lm.min(lm.cdiv(m0 + BM, BN), lm.cdiv(S, BN)) if CAUSAL else lm.cdiv(S, BN)
                hk = h // group
                s = lm.step(kv)
                lm.wait(k_empty, stage=s)
                smem_k.tma_load(K, coords=(0, (nblk - 1) * BN, hk, b), stage=s, barrier=k_full)
                sq = lm.step(qp)
                lm.wait(q_empty, stage=sq)
                smem_q.tma_load(Q, coords=(0, m0, h, b), stage=sq, barrier=q_full)
                for j in lm.range(1, nblk):                                     # right to left: the masked block comes first
                    sv = lm.at(kv)
                    s = lm.step(kv)
                    lm.wait(k_empty, stage=s)
                    smem_k.tma_load(K, coords=(0, (nblk - 1 - j) * BN, hk, b), stage=s, barrier=k_full)
                    lm.wait(v_empty, stage=sv)
                    smem_v.tma_load(V, coords=(0, (nblk - j) * BN, hk, b), stage=sv, barrier=v_full)
                sv = lm.at(kv)
                lm.wait(v_empty, stage=sv)
                smem_v.tma_load(V, coords=(0, 0, hk, b), stage=sv, barrier=v_full)

    with math:
        for t in lm.tiles(sched):
            if DEAL:
                twin = t.w < pairs
                x = t.w if twin else t.w - pairs
                over = units if twin else late
                across, down = x // over, x % over
                flat = across if twin else heads - late + down
                b, h = flat // H, flat % H
                last, first = mt - 1 - (down if twin else across), down - odd
                parts = 2 if twin and first >= 0 else 1
            else:
                b, h = t.b, t.h
                last, first = mt - 1 - t.m, t.m
                parts = lm.min(2, mt - 2 * t.m) if CAUSAL else 1
            for half in lm.range(parts):
                at = first if half == 1 or not CAUSAL else last
                m0 = at * BM
                nblk = lm.min(lm.cdiv(m0 + BM, BN), lm.cdiv(S, BN)) if CAUSAL else lm.cdiv(S, BN)
                row0 = m0 + 64 * math.index
                mine = lm.min(lm.cdiv(row0 + 64, BN), nblk) if SKIP else nblk           # blocks of which these rows see something
                sc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
                o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", init=0.0)
                sq = lm.step(qp)
                lm.wait(q_full, stage=sq)
                q = smem_q[sq].rows(64 * math.index, 64)

                if SKIP:
                    if mine < nblk:                                             # the last block is other members' alone
                        s = lm.step(kv)
                        lm.wait(k_full, stage=s)
                        lm.arrive(k_empty, stage=s)
                        lm.wait(v_full, stage=s)
                        lm.arrive(v_empty, stage=s)
                        lm.wait(turn)
                        lm.arrive(turn)
                s = lm.step(kv)
                lm.wait(k_full, stage=s)
                lm.mma(sc, q, smem_k[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(k_empty, stage=s)
                cols = lm.iota(sc, axis=1, base=(mine - 1) * BN)
                sc = lm.where(cols <= lm.iota(sc, axis=0, base=row0) if CAUSAL else cols < S, sc, -lm.inf)  # rows beyond S see anything: they are not stored
                m = lm.reduce(sc, "max", axis=1)
                if CAUSAL and not SKIP and BN % BM != 0:
                    m = lm.max(m, -1e30)                                        # a row may see no key of this block: no inf - inf
                if LAGS:
                    ref = m * scale_log2 + MARGIN                               # every weight is at most 2^-MARGIN
                    p = lm.exp2(sc * scale_log2 - ref)
                else:
                    p = lm.exp2(sc * scale_log2 - m * scale_log2)
                l = lm.reduce(p, "add", axis=1, partial=True)                   # finished once a tile
                if LAGS:
                    pa = lm.cast(p.cols(0, SPLIT), lm.bf16, form="a")
                    pb = lm.cast(p.cols(SPLIT, BN - SPLIT - TAIL), lm.bf16, form="a")
                    if TAIL:
                        pc = lm.cast(p.cols(BN - TAIL, TAIL), lm.bf16, form="a")
                else:
                    pa = lm.cast(p, lm.bf16, form="a")

                for j in lm.range(1, mine):
                    sv = lm.at(kv)                                              # V of the block before
                    s = lm.step(kv)
                    lm.wait(k_full, stage=s)
                    lm.wait(turn)
                    lm.mma(sc, q, smem_k[s], init=True)
                    lm.wait(v_full, stage=sv)
                    if LAGS:
                        with lm.mma_group():
                            lm.mma(o, pa, smem_v[sv].rows(0, SPLIT).T)
                            lm.mma(o, pb, smem_v[sv].rows(SPLIT, BN - SPLIT - TAIL).T)
                            if TAIL:
                                lm.mma(o, pc, smem_v[sv].rows(BN - TAIL, TAIL).T)
                    else:
                        lm.mma(o, pa, smem_v[sv].T)
                    lm.arrive(turn)                                             # another member issues while this one does its softmax
                    lm.mma_wait(pending=1)                                      # the scores are there, P V still runs
                    lm.arrive(k_empty, stage=s)
                    if CAUSAL and not SKIP and BN % BM != 0:
                        sc = lm.where(lm.iota(sc, axis=1, base=(mine - 1 - j) * BN) <= lm.iota(sc, axis=0, base=row0), sc, -lm.inf)
                    if LAGS:                                                    # rows that outgrow their reference are rare: warps without one go on
                        sc = sc * scale_log2 - ref
                        by = lm.excess(sc.cols(0, SPLIT), margin=MARGIN)
                        sc = sc - by
                        ref = ref + by
                        l = l * lm.exp2(-by)
                        p1 = lm.exp2(sc.cols(0, SPLIT))                         # the other columns are looked at under these exponentials
                        l = l + lm.reduce(p1, "add", axis=1, partial=True)
                        more = lm.excess(sc.cols(SPLIT, BN - SPLIT), margin=MARGIN)
                        sc = sc - more
                        ref = ref + more
                        l = l * lm.exp2(-more)
                        p1 = p1 * lm.exp2(-more)
                        lm.mma_wait(pending=0)
                        lm.arrive(v_empty, stage=sv)
                        o = o * lm.exp2(-by - more)
                        pa = lm.cast(p1, lm.bf16, form="a")
                        p2 = lm.exp2(sc.cols(SPLIT, BN - SPLIT - TAIL))
                        l = l + lm.reduce(p2, "add", axis=1, partial=True)
                        pb = lm.cast(p2, lm.bf16, form="a")
                        if TAIL:                                                # in the gaps between the others' exponentials
                            p3 = lm.exp2_fma(sc.cols(BN - TAIL, TAIL))
                            l = l + lm.reduce(p3, "add", axis=1, partial=True)
                            pc = lm.cast(p3, lm.bf16, form="a")
                    else:
                        m_new = lm.max(m, lm.reduce(sc, "max", axis=1))
                        fix = lm.exp2(m * scale_log2 - m_new * scale_log2)
                        p = lm.exp2(sc * scale_log2 - m_new * scale_log2)
                        l = l * fix + lm.reduce(p, "add", axis=1, partial=True)
                        lm.mma_wait(pending=0)
                        lm.arrive(v_empty, stage=sv)
                        o = o * fix
                        pa = lm.cast(p, lm.bf16, form="a")
                        m = m_new

                if STAGED:
                    lm.arrive(q_empty, stage=sq)
                s = lm.at(kv)
                lm.wait(v_full, stage=s)
                if LAGS:
                    with lm.mma_group():
                        lm.mma(o, pa, smem_v[s].rows(0, SPLIT).T)
                        lm.mma(o, pb, smem_v[s].rows(SPLIT, BN - SPLIT - TAIL).T)
                        if TAIL:
                            lm.mma(o, pc, smem_v[s].rows(BN - TAIL, TAIL).T)
                else:
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
                out.tma_store(O, coords=(0, row0, h, b))
                if not STAGED:
                    lm.store_wait(pending=0)
                    lm.sync(own)
                    lm.arrive(q_empty, stage=sq)
        if STAGED:
            lm.store_wait(pending=0)
