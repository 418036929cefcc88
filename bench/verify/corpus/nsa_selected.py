"""Native sparse attention, the selected branch: 64 query heads of a group share the blocks that were chosen for their token."""


@cake.schedule(target="sm_90a")
def nsa_selected(lm, Q: LM.tma4d[LM.bf16, "T", "HK", 64, "D"], K: LM.tma3d[LM.bf16, "S", "HK", "D"], V: LM.tma3d[LM.bf16, "S", "HK", "D"],
                 BLOCK: LM.gmem1d[LM.i32, "NI"], COUNT: LM.gmem1d[LM.i32, "NC"], O: LM.gmem4d[LM.bf16, "T", "HK", 64, "D"],
                 T: LM.i32, S: LM.i32, HK: LM.i32, NI: LM.i32, NC: LM.i32, scale: LM.f32, *, D=128, BS=64, TOPN=16, STAGES=2):
    """Native sparse attention, the selected branch: 64 query heads of a group share the blocks that were chosen for their token."""
    lm.launch(grid="persistent")
    lm.assume(NI == T * HK * TOPN and NC == T * HK)
    lm.assume_values(COUNT, 1, TOPN + 1)
    lm.assume_values(BLOCK, 0, lm.cdiv(S, BS))
    qb, kb = 64 * D * 2, BS * D * 2
    pool = lm.smem(qb + 2 * STAGES * kb)
    q = pool.view(offset=0, shape=(64, D), dtype=lm.bf16, swizzle="128b")
    k = pool.view(offset=qb, shape=(BS, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    v = pool.view(offset=qb + STAGES * kb, shape=(BS, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=232)
    load = lm.role(warps=range(4, 8), regs=40)
    qring = lm.pipeline(stages=1)
    qfull = lm.barrier(pipeline=qring, prod=[load], cons=[math], arrive="tx")
    qempty = lm.barrier(pipeline=qring, prod=[math], cons=[load], arrive="member", primed=True)
    ring = lm.pipeline(stages=STAGES)
    kfull = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    vfull = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(HK, T), names=("g", "t"))
    with load:
        for t in lm.tiles(sched):
            row = t.t * HK + t.g
            n = lm.ld(COUNT, row)
            sq = lm.step(qring)
            lm.wait(qempty, stage=sq)
            q.tma_load(Q, coords=(0, 0, t.g, t.t), stage=sq, barrier=qfull)
            for i in lm.range(n):
                s = lm.step(ring)
                b = lm.ld(BLOCK, row * TOPN + i)
                lm.wait(empty, stage=s)
                k.tma_load(K, coords=(0, t.g, b * BS), box=(D, 1, BS), stage=s, barrier=kfull)
                v.tma_load(V, coords=(0, t.g, b * BS), box=(D, 1, BS), stage=s, barrier=vfull)
    with math:
        x = lm.frag(shape=(64, BS), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            row = t.t * HK + t.g
            n = lm.ld(COUNT, row)
            o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", init=0.0)
            m = lm.rowvec(x, init=-lm.inf)
            den = lm.rowvec(x, init=0.0)
            sq = lm.step(qring)
            lm.wait(qfull, stage=sq)
            for i in lm.range(n):
                s = lm.step(ring)
                b = lm.ld(BLOCK, row * TOPN + i)
                lm.wait(kfull, stage=s)
                lm.mma(x, q[sq], k[s], init=True)
                lm.mma_wait(pending=0)
                key = lm.iota(x, 1, base=b * BS)
                y = lm.where(key <= t.t, x * (scale * 1.44269504), -lm.inf)
                new = lm.max(m, lm.reduce(y, "max", axis=1))
                safe = lm.where(new > -lm.inf, new, 0.0)
                fix = lm.exp2(m - safe)
                p = lm.exp2(y - safe)
                den = den * fix + lm.sum(p, axis=1)
                m = new
                o = o * fix
                lm.wait(vfull, stage=s)
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), v[s].T)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.arrive(qempty, stage=sq)
            lm.store(O, lm.cast(o * lm.rcp(den), lm.bf16), coords=(0, 0, t.g, t.t))
