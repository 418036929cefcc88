@cake.schedule(target="sm_90a")
def knn_topk_ring(lm, Q: LM.tma2d[LM.bf16, "M", 128], X: LM.tma2d[LM.bf16, "N", 128], NORM: LM.gmem1d[LM.f32, "N"], DIST: LM.gmem2d[LM.f32, "M", 8], IDX: LM.gmem2d[LM.i32, "M", 8], M: LM.i32, N: LM.i32, *, BN=64, STAGES=3, TOP=8):
    """The eight nearest of N vectors for each query: squared norms minus twice the product, a running sorted list a row."""
    lm.launch(grid="persistent")
    lm.assume(N >= TOP)
    pool = lm.smem(128 * 256 + STAGES * BN * 256)
    smem_q = pool.view(offset=0, shape=(128, 128), dtype=lm.bf16, swizzle="128b")
    smem_x = pool.view(offset=128 * 256, shape=(BN, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 8), members=2)
    load = lm.role(warps=range(8, 9))
    qring = lm.pipeline(stages=1)
    ring = lm.pipeline(stages=STAGES)
    qfull = lm.barrier(pipeline=qring, prod=[load], cons=[math], arrive="tx")
    qempty = lm.barrier(pipeline=qring, prod=[math], cons=[load], arrive="member", primed=True)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128),), names=("m",))
    with load:
        for t in lm.tiles(sched):
            q = lm.step(qring)
            lm.wait(qempty, stage=q)
            smem_q.tma_load(Q, coords=(0, t.m * 128), stage=q, barrier=qfull)
            for j in lm.range(lm.cdiv(N, BN)):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                smem_x.tma_load(X, coords=(0, j * BN), stage=s, barrier=full)
    with math:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            best = lm.topk_list(like=acc, k=TOP)
            q = lm.step(qring)
            lm.wait(qfull, stage=q)
            for j in lm.range(lm.cdiv(N, BN)):
                norm = lm.load(NORM, coords=(j * BN,), shape=(BN,), form="colvec", like=acc, clip=True)
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(acc, smem_q[q].rows(64 * math.index, 64), smem_x[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                d = lm.where(j * BN + lm.iota(acc, 1) < N, norm - 2.0 * acc, lm.inf)
                best = lm.topk(lm.where(d < best.worst, d, lm.inf), axis=1, base=j * BN, into=best)
            lm.arrive(qempty, stage=q)
            best = lm.finish(best)
            row = t.m * 128 + 64 * math.index + lm.iota(acc, 0)
            for i in lm.static_range(TOP):
                d, n = best[i]
                lm.store(DIST, d, coords=(i, row), mask=row < M)
                lm.store(IDX, n, coords=(i, row), mask=row < M)
