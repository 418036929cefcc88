import cake


@cake.schedule(target="sm_90a")
def fmha_fwd(lm, Q: LM.tma4d, K: LM.tma4d, V: LM.tma4d, O: LM.tma4d, LSE: LM.gmem3d[LM.f32],
             B: LM.i32, H: LM.i32, S: LM.i32, scale_log2: LM.f32, *, D=128, BM=128, BN=128, CAUSAL=True):
    """FlashAttention forward; tensors are (B, H, S, D), so coords are (d, s, h, b)."""
    lm.launch(grid="persistent")
    lm.assume(S > 0)
    q_bytes, kv_bytes = BM * D * 2, 2 * BN * D * 2
    pool = lm.smem(q_bytes + 2 * kv_bytes)
    smem_q = pool.view(offset=0, shape=(BM, D), dtype=lm.bf16, swizzle="128b")
    smem_k = pool.view(offset=q_bytes, shape=(BN, D), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_v = pool.view(offset=q_bytes + kv_bytes, shape=(BN, D), dtype=lm.bf16, stage=2, swizzle="128b")

    math = lm.role(warps=range(0, 8), regs=240, members=2)      # 64 query rows per warpgroup
    load = lm.role(warps=range(8, 12), regs=24)

    qp = lm.pipeline(stages=1)
    q_full = lm.barrier(pipeline=qp, prod=[load], cons=[math], arrive="tx")
    q_empty = lm.barrier(pipeline=qp, prod=[math], cons=[load], arrive="warp", primed=True)     # 8
    kv = lm.pipeline(stages=2)                                  # one ring position, two buffer sets
    k_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    k_empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="warp", primed=True)     # 8
    v_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    v_empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="warp", primed=True)     # 8
    turn = lm.turns(math)                                       # ping-pong: member 0 first, then 1, 0, 1, ...
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(S, BM), H, B), raster="heavy_first",
                         names=("m", "h", "b"))

    with load:
        for t in lm.tiles(sched):
            nblk = lm.min(lm.cdiv((t.m + 1) * BM, BN), lm.cdiv(S, BN)) if CAUSAL else lm.cdiv(S, BN)
            sq = lm.step(qp)
            lm.wait(q_empty, stage=sq)
            smem_q.tma_load(Q, coords=(0, t.m * BM, t.h, t.b), stage=sq, barrier=q_full)
            for j in lm.range(nblk):                            # right to left: the masked block comes first
                s = lm.step(kv)
                row = (nblk - 1 - j) * BN
                lm.wait(k_empty, stage=s)
                smem_k.tma_load(K, coords=(0, row, t.h, t.b), stage=s, barrier=k_full)
                lm.wait(v_empty, stage=s)
                smem_v.tma_load(V, coords=(0, row, t.h, t.b), stage=s, barrier=v_full)

    with math:
        for t in lm.tiles(sched):
            nblk = lm.min(lm.cdiv((t.m + 1) * BM, BN), lm.cdiv(S, BN)) if CAUSAL else lm.cdiv(S, BN)
            row0 = t.m * BM + 64 * math.index
            sc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
            o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", init=0.0)
            sq = lm.step(qp)
            lm.wait(q_full, stage=sq)
            q = smem_q[sq].rows(64 * math.index, 64)

            # block 0: scores only, masked
            s = lm.step(kv)
            lm.wait(k_full, stage=s)
            lm.mma(sc, q, smem_k[s], init=True)
            lm.mma_wait(pending=0)
            lm.arrive(k_empty, stage=s)
            col = lm.iota(sc, axis=1, base=(nblk - 1) * BN)
            ok = col < S
            if CAUSAL:
                ok = ok & (col <= lm.iota(sc, axis=0, base=row0))
            x = lm.where(ok, sc, -lm.inf)
            m = lm.reduce(x, "max", axis=1)                     # 2 quad shuffles
            p = lm.exp2(x * scale_log2 - m * scale_log2)
            l = lm.reduce(p, "add", axis=1, partial=True)       # per-thread sums, finished once per tile
            pa = lm.cast(p, lm.bf16, form="a")                  # acc -> a: free for 16-bit types

            for j in lm.range(1, nblk):
                sv = lm.at(kv)                                  # V of block j-1
                s = lm.step(kv)                                 # K of block j
                lm.wait(k_full, stage=s)
                lm.wait(turn)
                lm.mma(sc, q, smem_k[s], init=True)             # group 1: S_j
                lm.wait(v_full, stage=sv)
                lm.mma(o, pa, smem_v[sv].T)                     # group 2: O += P_{j-1} V_{j-1}
                lm.arrive(turn)                                 # the other warpgroup may issue while we do softmax
                lm.mma_wait(pending=1)                          # S_j is in registers, O still running
                lm.arrive(k_empty, stage=s)
                m_new = lm.max(m, lm.reduce(sc, "max", axis=1))
                p = lm.exp2(sc * scale_log2 - m_new * scale_log2)
                fix = lm.exp2(m * scale_log2 - m_new * scale_log2)
                l = l * fix + lm.reduce(p, "add", axis=1, partial=True)
                lm.mma_wait(pending=0)                          # O done: pa and V slot are free
                lm.arrive(v_empty, stage=sv)
                o = o * fix
                pa = lm.cast(p, lm.bf16, form="a")
                m = m_new

            s = lm.at(kv)
            lm.wait(v_full, stage=s)
            lm.mma(o, pa, smem_v[s].T)
            lm.mma_wait(pending=0)
            lm.arrive(v_empty, stage=s)

            l = lm.finish(l)                                    # 2 quad shuffles
            q.store(lm.cast(o * lm.rcp(l), lm.bf16))            # reuse this member's Q rows for O
            lm.fence_proxy()
            lm.sync(own)
            q.tma_store(O, coords=(0, row0, t.h, t.b))          # clipped at S by the tensor map
            lm.store(LSE, m * scale_log2 + lm.log2(l), coords=(row0, t.h, t.b), mask=lm.iota(o, axis=0, base=row0) < S)
            lm.store_wait(pending=0)
            lm.sync(own)
            lm.arrive(q_empty, stage=sq)
