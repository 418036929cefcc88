"""Hopper k-means assignment of long vectors: a tile of points stays in shared memory, centroids stream past it 64 dimensions at a time."""


@cake.schedule(target="sm_90a")
def kmeans_assign_deep(lm, X: LM.tma3d[LM.bf16, "NB", "NP", "D"], MU: LM.tma3d[LM.bf16, "NB", "NK", "D"], MU_SQ: LM.tma2d[LM.f32, "NB", "NK"],
                  IDX: LM.gmem2d[LM.i32, "NB", "NP"], DIST: LM.gmem2d[LM.f32, "NB", "NP"], NB: LM.i32, NP: LM.i32, NK: LM.i32,
                  *, D=512, MEMBERS=2, BN=256, BK=64, STAGES=3, REGS=232, LOAD_REGS=40, EARLY=False):
    """idx[b,i] = argmin_j |mu_j|^2 - 2 <x_i, mu_j>, ties to the lowest j; DIST is that minimum (without |x_i|^2).

    EARLY lets the next launch start at the beginning of this one."""
    lm.launch(grid="persistent")
    lm.assume(NK > 0)
    lm.assume(NK % 4 == 0)                                                      # rows of MU_SQ are multiples of 16 bytes
    BM = 64 * MEMBERS
    x_bytes, c_bytes = BM * D * 2, STAGES * BN * BK * 2
    pool = lm.smem(x_bytes + c_bytes + BN * 4)
    smem_x = pool.view(offset=0, shape=(BM, D), dtype=lm.bf16, stage=1, swizzle="128b")
    smem_c = pool.view(offset=x_bytes, shape=(BN, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_n = pool.view(offset=x_bytes + c_bytes, shape=(BN,), dtype=lm.f32, stage=1)

    math = lm.role(warps=range(0, 4 * MEMBERS), regs=REGS, members=MEMBERS)    # 64 points each
    load = lm.role(warps=range(4 * MEMBERS, 4 * MEMBERS + 4), regs=LOAD_REGS)
    xp = lm.pipeline(stages=1)
    x_full = lm.barrier(pipeline=xp, prod=[load], cons=[math], arrive="tx")
    x_empty = lm.barrier(pipeline=xp, prod=[math], cons=[load], arrive="member", primed=True)
    cp = lm.pipeline(stages=STAGES)
    c_full = lm.barrier(pipeline=cp, prod=[load], cons=[math], arrive="tx")     # 64 dimensions of a chunk of centroids
    c_empty = lm.barrier(pipeline=cp, prod=[math], cons=[load], arrive="member", primed=True)
    nr = lm.pipeline(stages=1)
    n_full = lm.barrier(pipeline=nr, prod=[load], cons=[math], arrive="tx")     # the norms of a chunk
    n_empty = lm.barrier(pipeline=nr, prod=[math], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(NP, BM), NB), names=("m", "b"))
    kt = lm.cdiv(NK, BN)

    with load:
        if EARLY:
            lm.pdl_wait()
        for t in lm.tiles(sched):
            sx = lm.step(xp)
            lm.wait(x_empty, stage=sx)
            smem_x.tma_load(X, coords=(0, t.m * BM, t.b), stage=sx, barrier=x_full)
            for k in lm.range(kt):
                for d in lm.range(D // BK):
                    s = lm.step(cp)
                    lm.wait(c_empty, stage=s)
                    smem_c.tma_load(MU, coords=(d * BK, k * BN, t.b), stage=s, barrier=c_full)
                sn = lm.step(nr)
                lm.wait(n_empty, stage=sn)
                smem_n.tma_load(MU_SQ, coords=(k * BN, t.b), stage=sn, barrier=n_full)

    with math:
        if EARLY:
            lm.pdl_launch()                                                     # the next launch sets up while this one ends
            lm.pdl_wait()
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            row0 = t.m * BM + 64 * math.index
            sx = lm.step(xp)
            lm.wait(x_full, stage=sx)
            x = smem_x[sx].rows(64 * math.index, 64)
            best = (lm.rowvec(acc, init=lm.inf), lm.rowvec(acc, init=0))
            for k in lm.range(kt):
                for d in lm.range(D // BK):
                    s = lm.step(cp)
                    lm.wait(c_full, stage=s)
                    lm.mma(acc, x.cols(d * BK, BK), smem_c[s], init=(d == 0))
                    lm.mma_wait(pending=1)                                       # the slice before has been read
                    if d > 0:
                        lm.arrive(c_empty, stage=s.prev())
                sn = lm.step(nr)
                lm.wait(n_full, stage=sn)
                nrm = smem_n[sn].load(form="colvec", like=acc)
                nrm = lm.where(lm.iota(acc, axis=1, base=k * BN) < NK, nrm, lm.inf)  # rows past NK are zero-filled, not far away
                lm.arrive(n_empty, stage=sn)
                lm.mma_wait(pending=0)
                lm.arrive(c_empty, stage=lm.at(cp))
                best = lm.argmin(nrm - 2.0 * acc, axis=1, base=k * BN, into=best)
            lm.arrive(x_empty, stage=sx)
            val, idx = lm.finish(best)
            rows = lm.iota(acc, axis=0, base=row0)
            lm.store(IDX, idx, coords=(row0, t.b), mask=rows < NP)
            lm.store(DIST, val, coords=(row0, t.b), mask=rows < NP)
