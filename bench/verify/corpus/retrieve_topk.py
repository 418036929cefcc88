"""Retrieval: scores of every query against every key, the best K of each kept in registers while the keys stream by."""


@cake.schedule(target="sm_90a")
def retrieve_topk(lm, Q: LM.tma2d[LM.f16, "NQ", "D"], KEYS: LM.tma2d[LM.f16, "NK", "D"].const, VAL: LM.gmem2d[LM.f32, "TOP", "NQ"],
                  IDX: LM.gmem2d[LM.i32, "TOP", "NQ"], NQ: LM.i32, NK: LM.i32, *, D=64, BN=64, STAGES=3, TOP=4):
    """VAL[i, q], IDX[i, q]: the i-th largest of <Q[q], KEYS[j]> and its j."""
    lm.launch(grid="persistent")
    lm.assume(NK >= TOP)
    pool = lm.smem(128 * D * 2 + STAGES * BN * D * 2)
    sq = pool.view(offset=0, shape=(128, D), dtype=lm.f16, swizzle="128b")
    sk = pool.view(offset=128 * D * 2, shape=(BN, D), dtype=lm.f16, stage=STAGES, swizzle="128b")
    score = lm.role(warps=range(0, 8), members=2, regs=216)
    load = lm.role(warps=range(8, 12), regs=40)
    qr = lm.pipeline(stages=1)
    q_full = lm.barrier(pipeline=qr, prod=[load], cons=[score], arrive="tx")
    q_empty = lm.barrier(pipeline=qr, prod=[score], cons=[load], arrive="member", primed=True)
    kr = lm.pipeline(stages=STAGES)
    k_full = lm.barrier(pipeline=kr, prod=[load], cons=[score], arrive="tx")
    k_empty = lm.barrier(pipeline=kr, prod=[score], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(NQ, 128),), names=("q",))
    nt = lm.cdiv(NK, BN)

    with load:
        for t in lm.tiles(sched):
            q = lm.step(qr)
            lm.wait(q_empty, stage=q)
            sq.tma_load(Q, coords=(0, t.q * 128), stage=q, barrier=q_full)
            for j in lm.range(nt):
                s = lm.step(kr)
                lm.wait(k_empty, stage=s)
                sk.tma_load(KEYS, coords=(0, j * BN), stage=s, barrier=k_full, cache="keep")

    with score:
        acc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            row = t.q * 128 + 64 * score.index
            q = lm.step(qr)
            lm.wait(q_full, stage=q)
            best = lm.topk_list(acc, TOP, largest=True)
            for j in lm.range(nt):
                s = lm.step(kr)
                lm.wait(k_full, stage=s)
                lm.mma(acc, sq.rows(64 * score.index, 64), sk[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(k_empty, stage=s)
                x = lm.where(lm.iota(acc, axis=1, base=j * BN) < NK, acc, -lm.inf)
                best = lm.topk(x, axis=1, base=j * BN, into=best)
            lm.arrive(q_empty, stage=q)
            best = lm.finish(best)
            inside = lm.iota(acc, axis=0, base=row) < NQ
            for i in lm.static_range(TOP):
                v, at = best[i]
                lm.store(VAL, v, coords=(row, i), mask=inside)
                lm.store(IDX, at, coords=(row, i), mask=inside)
