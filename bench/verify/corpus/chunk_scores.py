"""Intra-chunk scores of a delta rule: the strictly lower triangle of beta (K K^T), one chunk a CTA."""


@cake.schedule(target="sm_90a")
def chunk_scores(lm, K: LM.tma3d[LM.bf16, "NW", "C", "D"], BETA: LM.gmem2d[LM.f32, "NW", "C"].const, S: LM.tma3d[LM.bf16, "NW", "C", "C"],
                 NW: LM.i32, *, C=64, D=128):
    """S[w, i, j] = BETA[w, i] <K[w, i], K[w, j]> for j < i, else 0; the tile of K is both operands."""
    lm.launch(grid="tiles", ctas_per_sm=4)
    pool = lm.smem(C * D * 2 + C * C * 2)
    sk = pool.view(offset=0, shape=(C, D), dtype=lm.bf16, swizzle="128b")
    ss = pool.view(offset=C * D * 2, shape=(C, C), dtype=lm.bf16, swizzle="128b")
    work = lm.role(warps=range(0, 4))
    ring = lm.pipeline(stages=1)
    full = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx")
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(NW,), names=("w",))
    with work:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            sk.tma_load(K, coords=(0, 0, t.w), stage=s, barrier=full)
            acc = lm.frag(shape=(C, C), dtype=lm.f32, form="acc")
            beta = lm.load(BETA, coords=(0, t.w), shape=(C,), form="rowvec", like=acc)
            lm.wait(full, stage=s)
            lm.mma(acc, sk, sk, init=True)
            lm.mma_wait(pending=0)
            below = lm.iota(acc, axis=1) < lm.iota(acc, axis=0)
            ss.store(lm.cast(lm.where(below, acc * beta, 0.0), lm.bf16))
            lm.fence_proxy()
            lm.sync(cta)
            ss.tma_store(S, coords=(0, 0, t.w))
            lm.store_wait(pending=0)
