@cake.schedule(target="sm_90a")
def attention_backward_kv(lm, Q: LM.tma3d[LM.bf16, "BH", "S", 64], K: LM.tma3d[LM.bf16, "BH", "S", 64], V: LM.tma3d[LM.bf16, "BH", "S", 64], dO: LM.tma3d[LM.bf16, "BH", "S", 64],
                          lse: LM.gmem2d[LM.f32, "BH", "S"], delta: LM.gmem2d[LM.f32, "BH", "S"], dK: LM.gmem3d[LM.bf16, "BH", "S", 64], dV: LM.gmem3d[LM.bf16, "BH", "S", 64],
                          BH: LM.i32, S: LM.i32, scale: LM.f32, scale_log2: LM.f32, *, BQ=64, STAGES=2):
    """dK and dV of causal attention: a block of 128 keys stays in shared memory, the queries that see it stream past. lse is in base 2.
    S^T = K Q^T, P = exp2(S^T - lse), dV += P dO, dP = V dO^T, dK += P (dP - delta) Q."""
    lm.launch(grid="tiles")
    q_bytes = BQ * 64 * 2
    pool = lm.smem(2 * 128 * 64 * 2 + 2 * STAGES * q_bytes)
    k_s = pool.view(offset=0, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    v_s = pool.view(offset=128 * 64 * 2, shape=(128, 64), dtype=lm.bf16, swizzle="128b")
    q_s = pool.view(offset=2 * 128 * 64 * 2, shape=(BQ, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    do_s = pool.view(offset=2 * 128 * 64 * 2 + STAGES * q_bytes, shape=(BQ, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    kv = lm.pipeline(stages=1)
    kv_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(S, 128), BH), names=("k", "h"))
    blocks = lm.cdiv(S, BQ)
    with load:
        for t in lm.tiles(sched):
            f = lm.step(kv)
            k_s.tma_load(K, coords=(0, t.k * 128, t.h), stage=f, barrier=kv_full)
            v_s.tma_load(V, coords=(0, t.k * 128, t.h), stage=f, barrier=kv_full)
            for i in lm.range(t.k * 128 // BQ, blocks):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                q_s.tma_load(Q, coords=(0, i * BQ, t.h), stage=s, barrier=full)
                do_s.tma_load(dO, coords=(0, i * BQ, t.h), stage=s, barrier=full)
    with math:
        st = lm.frag(shape=(64, BQ), dtype=lm.f32, form="acc")
        dp = lm.frag(shape=(64, BQ), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            dk = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            dv = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
            f = lm.step(kv)
            lm.wait(kv_full, stage=f)
            key0 = t.k * 128 + 64 * math.index
            for i in lm.range(t.k * 128 // BQ, blocks):
                s = lm.step(ring)
                row_lse = lm.load(lse, coords=(i * BQ, t.h), shape=(BQ,), form="colvec", like=st, clip=True)
                row_delta = lm.load(delta, coords=(i * BQ, t.h), shape=(BQ,), form="colvec", like=st, clip=True)
                lm.wait(full, stage=s)
                lm.mma(st, k_s.rows(64 * math.index, 64), q_s[s], init=True)
                lm.mma(dp, v_s.rows(64 * math.index, 64), do_s[s], init=True)
                lm.mma_wait(pending=1)
                p = lm.exp2(st * scale_log2 - row_lse)
                seen = (lm.iota(st, 1, base=i * BQ) >= lm.iota(st, 0, base=key0)) and (lm.iota(st, 1, base=i * BQ) < S)
                p = lm.where(seen, p, 0.0)
                lm.mma_wait(pending=0)
                ds = p * (dp - row_delta)
                pb = lm.cast(p, lm.bf16, form="a")
                db = lm.cast(ds, lm.bf16, form="a")
                lm.mma(dv, pb, do_s[s].T)
                lm.mma(dk, db, q_s[s].T)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.store(dV, lm.cast(dv, lm.bf16), coords=(0, key0, t.h), clip=True)
            lm.store(dK, lm.cast(dk * scale, lm.bf16), coords=(0, key0, t.h), clip=True)
