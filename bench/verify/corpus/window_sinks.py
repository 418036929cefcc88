"""gpt-oss attention: a causal window, grouped heads, and one learned sink logit a head that takes part in the denominator only."""


@cake.schedule(target="sm_90a")
def window_sinks(lm, Q: LM.tma3d[LM.bf16, "BH", "S", "D"], K: LM.tma3d[LM.bf16, "BHK", "S", "D"], V: LM.tma3d[LM.bf16, "BHK", "S", "D"], SINK: LM.gmem1d[LM.f32, "H"],
                 O: LM.tma3d[LM.bf16, "BH", "S", "D"], BH: LM.i32, BHK: LM.i32, H: LM.i32, S: LM.i32, scale: LM.f32, *, D=64, BN=128, WINDOW=128, GROUP=8, STAGES=2):
    """gpt-oss attention: a causal window, grouped heads, and one learned sink logit a head that takes part in the denominator only."""
    lm.launch(grid="persistent")
    lm.assume(BH == BHK * GROUP)
    qb, kb = 128 * D * 2, BN * D * 2
    pool = lm.smem(qb + 2 * STAGES * kb + qb)
    q = pool.view(offset=0, shape=(128, D), dtype=lm.bf16, swizzle="128b")
    k = pool.view(offset=qb, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    v = pool.view(offset=qb + STAGES * kb, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    out = pool.view(offset=qb + 2 * STAGES * kb, shape=(128, D), dtype=lm.bf16, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=240, members=2)
    load = lm.role(warps=range(8, 12), regs=24)
    qring = lm.pipeline(stages=1)
    qfull = lm.barrier(pipeline=qring, prod=[load], cons=[math], arrive="tx")
    qempty = lm.barrier(pipeline=qring, prod=[math], cons=[load], arrive="member", primed=True)
    ring = lm.pipeline(stages=STAGES)
    kfull = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    vfull = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    kempty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    vempty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    own = lm.named_barrier(math, per_member=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(S, 128), BH), names=("m", "bh"))

    with load:
        for t in lm.tiles(sched):
            lo = lm.max(t.m * 128 - WINDOW + 1, 0) // BN
            hi = lm.cdiv(lm.min(t.m * 128 + 128, S), BN)
            sq = lm.step(qring)
            lm.wait(qempty, stage=sq)
            q.tma_load(Q, coords=(0, t.m * 128, t.bh), stage=sq, barrier=qfull)
            for j in lm.range(lo, hi):
                s = lm.step(ring)
                lm.wait(kempty, stage=s)
                k.tma_load(K, coords=(0, j * BN, t.bh // GROUP), stage=s, barrier=kfull)
                lm.wait(vempty, stage=s)
                v.tma_load(V, coords=(0, j * BN, t.bh // GROUP), stage=s, barrier=vfull)

    with math:
        x = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            lo = lm.max(t.m * 128 - WINDOW + 1, 0) // BN
            hi = lm.cdiv(lm.min(t.m * 128 + 128, S), BN)
            sink = lm.ld(SINK, t.bh % H) * 1.44269504
            o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", init=0.0)
            m = lm.rowvec(x, init=0.0) + sink
            den = lm.rowvec(x, init=1.0)
            row = lm.iota(x, 0, base=t.m * 128 + 64 * math.index)
            sq = lm.step(qring)
            lm.wait(qfull, stage=sq)
            for j in lm.range(lo, hi):
                s = lm.step(ring)
                lm.wait(kfull, stage=s)
                lm.mma(x, q[sq].rows(64 * math.index, 64), k[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(kempty, stage=s)
                col = lm.iota(x, 1, base=j * BN)
                y = lm.where(col <= row and col + WINDOW > row, x * (scale * 1.44269504), -lm.inf)
                new = lm.max(m, lm.reduce(y, "max", axis=1))
                fix = lm.exp2(m - new)
                p = lm.exp2(y - new)
                den = den * fix + lm.sum(p, axis=1)
                m = new
                o = o * fix
                lm.wait(vfull, stage=s)
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), v[s].T)
                lm.mma_wait(pending=0)
                lm.arrive(vempty, stage=s)
            lm.arrive(qempty, stage=sq)
            lm.store_wait(pending=0)
            lm.sync(own)
            mine = out.rows(64 * math.index, 64)
            mine.store(lm.cast(o / den, lm.bf16))
            lm.fence_proxy()
            lm.sync(own)
            mine.tma_store(O, coords=(0, t.m * 128 + 64 * math.index, t.bh))
        lm.store_wait(pending=0)
