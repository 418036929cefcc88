"""k-means assignment with two accumulators a member: the argmin of one chunk overlaps the products of the next."""


@cake.schedule(target="sm_90a")
def kmeans_two_accumulators(lm, X: LM.tma2d[LM.bf16, "NP", "D"], MU: LM.tma2d[LM.bf16, "NK", "D"], MU_SQ: LM.tma1d[LM.f32, "NK"],
                            IDX: LM.gmem1d[LM.i32, "NP"], NP: LM.i32, NK: LM.i32, *, D=128, BN=64, STAGES=4):
    """IDX[i] = argmin_j MU_SQ[j] - 2 <X[i], MU[j]>; norms arrive with their chunk of centroids."""
    lm.launch(grid="persistent")
    lm.assume(NK > 0)
    x_bytes, c_bytes = 128 * D * 2, STAGES * BN * D * 2
    pool = lm.smem(x_bytes + c_bytes + STAGES * BN * 4)
    sx = pool.view(offset=0, shape=(128, D), dtype=lm.bf16, swizzle="128b")
    sc = pool.view(offset=x_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sn = pool.view(offset=x_bytes + c_bytes, shape=(BN,), dtype=lm.f32, stage=STAGES)
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    xr = lm.pipeline(stages=1)
    x_full = lm.barrier(pipeline=xr, prod=[load], cons=[math], arrive="tx")
    x_empty = lm.barrier(pipeline=xr, prod=[math], cons=[load], arrive="member", primed=True)
    cr = lm.pipeline(stages=STAGES)
    c_full = lm.barrier(pipeline=cr, prod=[load], cons=[math], arrive="tx")
    c_empty = lm.barrier(pipeline=cr, prod=[math], cons=[load], arrive="warp", primed=True)
    pair = lm.pipeline(stages=2)                               # which accumulator: carries no barrier
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(NP, 128),), names=("m",))
    kt = lm.cdiv(NK, BN)

    with load:
        for t in lm.tiles(sched):
            x = lm.step(xr)
            lm.wait(x_empty, stage=x)
            sx.tma_load(X, coords=(0, t.m * 128), stage=x, barrier=x_full)
            for k in lm.range(kt):
                s = lm.step(cr)
                lm.wait(c_empty, stage=s)
                sc.tma_load(MU, coords=(0, k * BN), stage=s, barrier=c_full)
                sn.tma_load(MU_SQ, coords=(k * BN,), stage=s, barrier=c_full)

    with math:
        for t in lm.tiles(sched):
            acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc", stage=2)
            row0 = t.m * 128 + 64 * math.index
            mine = sx.rows(64 * math.index, 64)
            x = lm.step(xr)
            lm.wait(x_full, stage=x)
            s = lm.step(cr)
            lm.wait(c_full, stage=s)
            a = lm.step(pair)
            lm.mma(acc[a], mine, sc[s], init=True)
            best = (lm.rowvec(acc, init=lm.inf), lm.rowvec(acc, init=0))
            for k in lm.range(1, kt):
                s = lm.step(cr)
                lm.wait(c_full, stage=s)
                a = lm.step(pair)
                lm.mma(acc[a], mine, sc[s], init=True)
                lm.mma_wait(pending=1)
                nrm = sn[s.prev()].load(form="colvec", like=acc)
                lm.arrive(c_empty, stage=s.prev())
                best = lm.argmin(nrm - 2.0 * acc[a.prev()], axis=1, base=(k - 1) * BN, into=best)
            s = lm.at(cr)
            nrm = sn[s].load(form="colvec", like=acc)
            nrm = lm.where(lm.iota(acc, axis=1, base=(kt - 1) * BN) < NK, nrm, lm.inf)
            lm.mma_wait(pending=0)
            lm.arrive(c_empty, stage=s)
            lm.arrive(x_empty, stage=x)
            best = lm.argmin(nrm - 2.0 * acc[lm.at(pair)], axis=1, base=(kt - 1) * BN, into=best)
            val, idx = lm.finish(best)
            lm.store(IDX, idx, coords=(row0,), mask=lm.iota(acc, axis=0, base=row0) < NP)
