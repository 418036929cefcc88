@cake.schedule(target=("sm_120a", "sm_121a"))
def prefill_varlen_sm120(lm, Q: LM.gmem2d[LM.bf16, "TQ", "QW"], K: LM.tma2d[LM.bf16, "TK", "KW"], V: LM.tma2d[LM.bf16, "TK", "KW"], cu_q: LM.gmem1d[LM.i32, "BP"], cu_k: LM.gmem1d[LM.i32, "BP"],
                         O: LM.gmem2d[LM.bf16, "TQ", "QW"], TQ: LM.i32, TK: LM.i32, QW: LM.i32, KW: LM.i32, BP: LM.i32, HEADS: LM.i32, MAXQ: LM.i32, scale_log2: LM.f32,
                         *, D=64, GROUP=2, BQ=64, BN=32, SLOTS=2):
    """Causal attention over packed sequences, keys end where queries end (chunked prefill), grouped heads, two mma.sync warpsets behind a TMA warp."""
    lm.launch(grid="tiles")
    lm.assume(QW == HEADS * D)
    lm.assume(HEADS % GROUP == 0)
    lm.assume(KW * GROUP == QW)
    lm.assume_values(cu_q, 0, TQ + 1, sorted=True)
    lm.assume_values(cu_k, 0, TK + 1, sorted=True)
    kv = BN * D * 2
    pool = lm.smem(2 * SLOTS * kv)
    sk = pool.view(offset=0, shape=(BN, D), dtype=lm.bf16, stage=SLOTS, swizzle="128b")
    sv = pool.view(offset=SLOTS * kv, shape=(BN, D), dtype=lm.bf16, stage=SLOTS, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    dma = lm.role(warps=range(4, 5))
    kr = lm.pipeline(stages=SLOTS)
    vr = lm.pipeline(stages=SLOTS)
    k_full = lm.barrier(pipeline=kr, prod=[dma], cons=[math], arrive="tx")
    k_free = lm.barrier(pipeline=kr, prod=[math], cons=[dma], arrive="warp", primed=True)
    v_full = lm.barrier(pipeline=vr, prod=[dma], cons=[math], arrive="tx")
    v_free = lm.barrier(pipeline=vr, prod=[math], cons=[dma], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(lm.cdiv(MAXQ, BQ), HEADS, BP - 1), names=("qb", "h", "b"))
    with dma:
        for t in lm.tiles(sched):
            q0 = lm.ld(cu_q, t.b)
            nq = lm.ld(cu_q, t.b + 1) - q0
            k0 = lm.ld(cu_k, t.b)
            nk = lm.ld(cu_k, t.b + 1) - k0
            if t.qb * BQ < nq:
                for j in lm.range(lm.cdiv(lm.min(nk, nk - nq + (t.qb + 1) * BQ), BN)):
                    s = lm.step(kr)
                    lm.wait(k_free, stage=s)
                    sk.tma_load(K, coords=(t.h // GROUP * D, k0 + j * BN), stage=s, barrier=k_full)
                    u = lm.step(vr)
                    lm.wait(v_free, stage=u)
                    sv.tma_load(V, coords=(t.h // GROUP * D, k0 + j * BN), stage=u, barrier=v_full)
    with math:
        for t in lm.tiles(sched):
            q0 = lm.ld(cu_q, t.b)
            nq = lm.ld(cu_q, t.b + 1) - q0
            k0 = lm.ld(cu_k, t.b)
            nk = lm.ld(cu_k, t.b + 1) - k0
            if t.qb * BQ < nq:
                o = lm.frag(shape=(BQ, D), dtype=lm.f32, form="acc", init=0)
                qf = lm.load(Q, coords=(t.h * D, q0 + t.qb * BQ), shape=(BQ, D), form="a", like=o, clip=True)
                m = lm.rowvec(o, init=-lm.inf)
                l = lm.rowvec(o, init=0.0)
                for j in lm.range(lm.cdiv(lm.min(nk, nk - nq + (t.qb + 1) * BQ), BN)):
                    s = lm.step(kr)
                    lm.wait(k_full, stage=s)
                    p = lm.frag(shape=(BQ, BN), dtype=lm.f32, form="acc")
                    lm.mma(p, qf, sk[s].ldmatrix(form="b"), init=True)
                    lm.arrive(k_free, stage=s)
                    col = lm.iota(p, 1, base=j * BN)
                    row = lm.iota(p, 0, base=t.qb * BQ + nk - nq)
                    p = lm.where(col <= row and col < nk, p * scale_log2, -lm.inf)
                    top = lm.max(m, lm.reduce(p, "max", axis=1))
                    safe = lm.where(top == -lm.inf, 0.0, top)
                    fix = lm.exp2(m - safe)
                    e = lm.exp2(p - safe)
                    l = l * fix + lm.sum(e, axis=1)
                    m = top
                    u = lm.step(vr)
                    lm.wait(v_full, stage=u)
                    o = o * fix
                    lm.mma(o, lm.cast(e, lm.bf16, form="a"), sv[u].T.ldmatrix(form="b"))
                    lm.arrive(v_free, stage=u)
                live = lm.in_bounds(o, rows=nq - t.qb * BQ, cols=D)
                lm.store(O, lm.cast(lm.where(l > 0, o / l, 0.0), lm.bf16), coords=(t.h * D, q0 + t.qb * BQ), mask=live)
