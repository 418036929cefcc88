"""k-means assignment, 128 points a member in turns: all norms come once with the points, centroids in chunks."""


@cake.schedule(target="sm_90a")
def kmeans_resident_norms(lm, X: LM.tma2d[LM.f16, "NP", "D"], MU: LM.tma2d[LM.f16, "NK", "D"], MU_SQ: LM.tma1d[LM.f32, "NK"],
                          IDX: LM.gmem1d[LM.i32, "NP"], DIST: LM.gmem1d[LM.f32, "NP"], NP: LM.i32, NK: LM.i32, *, D=64, BN=64, STAGES=3, MAXK=512):
    """IDX and DIST of the nearest of NK <= MAXK centroids; DIST without |x|^2."""
    lm.launch(grid="persistent")
    lm.assume(NK > 0)
    lm.assume(NK <= MAXK)
    x_bytes, c_bytes = 256 * D * 2, STAGES * BN * D * 2
    pool = lm.smem(x_bytes + c_bytes + MAXK * 4)
    sx = pool.view(offset=0, shape=(256, D), dtype=lm.f16, swizzle="128b")
    sc = pool.view(offset=x_bytes, shape=(BN, D), dtype=lm.f16, stage=STAGES, swizzle="128b")
    sn = pool.view(offset=x_bytes + c_bytes, shape=(MAXK,), dtype=lm.f32)
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    xr = lm.pipeline(stages=1)
    x_full = lm.barrier(pipeline=xr, prod=[load], cons=[math], arrive="tx")
    x_empty = lm.barrier(pipeline=xr, prod=[math], cons=[load], arrive="warp", primed=True)
    cr = lm.pipeline(stages=STAGES)
    c_full = lm.barrier(pipeline=cr, prod=[load], cons=[math], arrive="tx")
    c_empty = lm.barrier(pipeline=cr, prod=[math], cons=[load], arrive="member", primed=True)
    turn = lm.turns(math)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(NP, 256),), names=("m",))
    kt = lm.cdiv(NK, BN)

    with load:
        for t in lm.tiles(sched):
            x = lm.step(xr)
            lm.wait(x_empty, stage=x)
            sx.tma_load(X, coords=(0, t.m * 256), stage=x, barrier=x_full)
            sn.tma_load(MU_SQ, coords=(0,), stage=x, barrier=x_full)
            for k in lm.range(kt):
                s = lm.step(cr)
                lm.wait(c_empty, stage=s)
                sc.tma_load(MU, coords=(0, k * BN), stage=s, barrier=c_full)

    with math:
        acc = lm.frag(shape=(128, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            row0 = t.m * 256 + 128 * math.index
            mine = sx.rows(128 * math.index, 128)
            x = lm.step(xr)
            lm.wait(x_full, stage=x)
            best = (lm.rowvec(acc, init=lm.inf), lm.rowvec(acc, init=0))
            for k in lm.range(kt):
                s = lm.step(cr)
                lm.wait(c_full, stage=s)
                lm.wait(turn)
                lm.mma(acc, mine, sc[s], init=True)
                lm.arrive(turn)
                nrm = sn.cols(k * BN, BN).load(form="colvec", like=acc)
                nrm = lm.where(lm.iota(acc, axis=1, base=k * BN) < NK, nrm, lm.inf)
                lm.mma_wait(pending=0)
                lm.arrive(c_empty, stage=s)
                best = lm.argmin(nrm - 2.0 * acc, axis=1, base=k * BN, into=best)
            lm.arrive(x_empty, stage=x)
            val, idx = lm.finish(best)
            inside = lm.iota(acc, axis=0, base=row0) < NP
            lm.store(IDX, idx, coords=(row0,), mask=inside)
            lm.store(DIST, val, coords=(row0,), mask=inside)
