import cake


@cake.schedule(target="sm_90a")
def kmeans_assign(lm, X: LM.tma3d, MU: LM.tma3d, MU_SQ: LM.tma2d, IDX: LM.gmem2d[LM.i32], DIST: LM.gmem2d[LM.f32],
                  NB: LM.i32, NP: LM.i32, NK: LM.i32, *, D=128, BM=256, BN=128):
    """idx[b,i] = argmin_j |mu_j|^2 - 2 <x_i, mu_j>; X is (NB, NP, D), MU is (NB, NK, D), MU_SQ is (NB, NK)."""
    lm.launch(grid="persistent")
    x_bytes, c_bytes = BM * D * 2, BN * D * 2
    pool = lm.smem(2 * x_bytes + 2 * c_bytes + 2 * 1024)
    smem_x = pool.view(offset=0, shape=(BM, D), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_c = pool.view(offset=2 * x_bytes, shape=(BN, D), dtype=lm.bf16, stage=2, swizzle="128b")
    smem_n = pool.view(offset=2 * x_bytes + 2 * c_bytes, shape=(BN,), dtype=lm.f32, stage=2)

    math = lm.role(warps=range(0, 8), regs=232, members=2)      # 128 points per warpgroup
    load = lm.role(warps=range(8, 12), regs=40)
    xp = lm.pipeline(stages=2)
    x_full = lm.barrier(pipeline=xp, prod=[load], cons=[math], arrive="tx")
    x_empty = lm.barrier(pipeline=xp, prod=[math], cons=[load], arrive="warp", primed=True)     # 8
    cp = lm.pipeline(stages=2)
    c_full = lm.barrier(pipeline=cp, prod=[load], cons=[math], arrive="tx")                     # MU tile + norms
    c_empty = lm.barrier(pipeline=cp, prod=[math], cons=[load], arrive="warp", primed=True)     # 8
    turn = lm.turns(math)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(NP, BM), NB), names=("m", "b"))
    kt = lm.cdiv(NK, BN)

    with load:
        for t in lm.tiles(sched):
            sx = lm.step(xp)
            lm.wait(x_empty, stage=sx)
            smem_x.tma_load(X, coords=(0, t.m * BM, t.b), stage=sx, barrier=x_full)
            for k in lm.range(kt):
                s = lm.step(cp)
                lm.wait(c_empty, stage=s)
                smem_c.tma_load(MU, coords=(0, k * BN, t.b), stage=s, barrier=c_full)
                smem_n.tma_load(MU_SQ, coords=(k * BN, t.b), stage=s, barrier=c_full)

    with math:
        acc = lm.frag(shape=(128, BN), dtype=lm.f32, form="acc")        # two m64 blocks per warpgroup
        for t in lm.tiles(sched):
            row0 = t.m * BM + 128 * math.index
            sx = lm.step(xp)
            lm.wait(x_full, stage=sx)
            x = smem_x[sx].rows(128 * math.index, 128)
            best = (lm.rowvec(acc, init=lm.inf), lm.rowvec(acc, init=0))  # value and index, per thread
            for k in lm.range(kt):
                s = lm.step(cp)
                lm.wait(c_full, stage=s)
                lm.wait(turn)
                lm.mma(acc, x, smem_c[s], init=True)
                lm.arrive(turn)                                         # peer's MMA overlaps our argmin
                nrm = smem_n[s].load(form="colvec")
                lm.mma_wait(pending=0)
                lm.arrive(c_empty, stage=s)
                d = nrm - 2.0 * acc
                d = lm.where(lm.iota(acc, axis=1, base=k * BN) < NK, d, lm.inf)
                best = lm.argmin(d, axis=1, base=k * BN, into=best)     # thread-local compare, lowest index wins
            lm.arrive(x_empty, stage=sx)
            val, idx = lm.finish(best)                                  # 2 quad shuffles of (value, index)
            rows = lm.iota(acc, axis=0, base=row0)
            lm.store(IDX, idx, coords=(row0, t.b), mask=rows < NP)
            lm.store(DIST, val, coords=(row0, t.b), mask=rows < NP)
