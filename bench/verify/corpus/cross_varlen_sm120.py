@cake.schedule(target=("sm_120a", "sm_121a"))
def cross_varlen_sm120(lm, Q: LM.tma3d[LM.bf16, "TQ", "H", 64], K: LM.tma3d[LM.bf16, "TK", "H", 64], V: LM.tma3d[LM.bf16, "TK", "H", 64], CUQ: LM.gmem1d[LM.i32, "B1"], CUK: LM.gmem1d[LM.i32, "B1"],
                       O: LM.gmem3d[LM.bf16, "TQ", "H", 64], LSE: LM.gmem2d[LM.f32, "H", "TQ"], TQ: LM.i32, TK: LM.i32, H: LM.i32, B: LM.i32, B1: LM.i32, QT: LM.i32, scale: LM.f32, *, BK=64, STAGES=2):
    """Cross attention of packed sequences: every query of a sequence sees every key of its partner; a load warp feeds four warps of mma.sync."""
    lm.launch(grid="persistent")
    lm.assume(B1 == B + 1)
    lm.assume_values(CUQ, 0, TQ + 1, sorted=True)
    lm.assume_values(CUK, 0, TK + 1, sorted=True)
    kv_bytes = STAGES * BK * 64 * 2
    pool = lm.smem(64 * 64 * 2 + 2 * kv_bytes)
    smem_q = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    smem_k = pool.view(offset=64 * 64 * 2, shape=(BK, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_v = pool.view(offset=64 * 64 * 2 + kv_bytes, shape=(BK, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    qring = lm.pipeline(stages=1)
    kv = lm.pipeline(stages=STAGES)
    qfull = lm.barrier(pipeline=qring, prod=[load], cons=[math], arrive="tx")
    qempty = lm.barrier(pipeline=qring, prod=[math], cons=[load], arrive="warp", primed=True)
    full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(QT, H, B), names=("m", "h", "b"))

    with load:
        for t in lm.tiles(sched):
            q0 = lm.ld(CUQ, t.b) + t.m * 64
            q1 = lm.ld(CUQ, t.b + 1)
            k0 = lm.ld(CUK, t.b)
            k1 = lm.ld(CUK, t.b + 1)
            if q0 < q1:
                q = lm.step(qring)
                lm.wait(qempty, stage=q)
                smem_q.tma_load(Q, coords=(0, t.h, q0), box=(64, 1, 64), stage=q, barrier=qfull)
                for j in lm.range(lm.cdiv(k1 - k0, BK)):
                    s = lm.step(kv)
                    lm.wait(empty, stage=s)
                    smem_k.tma_load(K, coords=(0, t.h, k0 + j * BK), box=(64, 1, BK), stage=s, barrier=full)
                    smem_v.tma_load(V, coords=(0, t.h, k0 + j * BK), box=(64, 1, BK), stage=s, barrier=full)

    with math:
        for t in lm.tiles(sched):
            q0 = lm.ld(CUQ, t.b) + t.m * 64
            q1 = lm.ld(CUQ, t.b + 1)
            k0 = lm.ld(CUK, t.b)
            k1 = lm.ld(CUK, t.b + 1)
            if q0 < q1:
                o = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc", init=0.0)
                top = lm.rowvec(like=o, init=0.0) - lm.inf
                total = lm.rowvec(like=o, init=0.0)
                q = lm.step(qring)
                lm.wait(qfull, stage=q)
                a = smem_q[q].ldmatrix(form="a")
                lm.arrive(qempty, stage=q)
                for j in lm.range(lm.cdiv(k1 - k0, BK)):
                    s = lm.step(kv)
                    lm.wait(full, stage=s)
                    acc = lm.frag(shape=(64, BK), dtype=lm.f32, form="acc", init=0.0)
                    lm.mma(acc, a, smem_k[s].ldmatrix(form="b"))
                    x = lm.where(k0 + j * BK + lm.iota(acc, 1) < k1, acc * (scale * 1.44269504), -lm.inf)
                    new = lm.max(top, lm.reduce(x, "max", axis=1))
                    p = lm.exp2(x - new)
                    fix = lm.exp2(top - new)
                    total = total * fix + lm.reduce(p, "add", axis=1)
                    o = o * fix
                    top = new
                    lm.mma(o, lm.cast(p, lm.bf16, form="a"), smem_v[s].T.ldmatrix(form="b"))
                    lm.arrive(empty, stage=s)
                inv = lm.where(total > 0.0, lm.rcp(total), 0.0)
                lm.store(O, lm.cast(o * inv, lm.bf16), coords=(0, t.h, q0 + lm.iota(o, 0)), mask=lm.in_bounds(o, q1 - q0, 64))
                rows = q0 + lm.iota(o, 0)
                lm.store(LSE, top * 0.69314718 + lm.log(total), coords=(q0, t.h), mask=rows < q1)
