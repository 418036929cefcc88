@cake.schedule(target="sm_90a")
def cross_entropy_ignored(lm, X: LM.gmem2d[LM.bf16, "ROWS", "V"], flat: LM.gmem1d[LM.bf16, "RV"], target: LM.gmem1d[LM.i32, "ROWS"], loss: LM.gmem1d[LM.f32, "ROWS"], dX: LM.gmem2d[LM.bf16, "ROWS", "V"],
                          ROWS: LM.i32, V: LM.i32, RV: LM.i32, inv_n: LM.f32, *, BLK=1024, WARPS=4, IGNORE=-100):
    """Loss and gradient of a row of logits in two passes: an online maximum and sum, then (softmax - one hot) / n; ignored rows give zeros."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    lm.assume(V > 0 and V % 8 == 0 and RV == ROWS * V)
    pool = lm.smem(2 * WARPS * 4)
    s_max = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32)
    s_sum = pool.view(offset=WARPS * 4, shape=(WARPS,), dtype=lm.f32)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(ROWS,), names=("r",))
    log2e = 1.4426950408889634
    with work:
        for t in lm.tiles(sched):
            y = lm.ld(target, t.r)
            if y != IGNORE:
                m = -lm.inf
                l = 0.0
                for i in lm.range(lm.cdiv(V, BLK)):
                    x = lm.load(X, coords=(i * BLK, t.r), shape=(BLK,), form="vec", clip=True, fill=-lm.inf)
                    z = lm.cast(x, lm.f32) * log2e
                    m_new = lm.max(m, lm.reduce(z, "max", axis=None, across=work, scratch=s_max, sync=meet))
                    l = l * lm.exp2(m - m_new) + lm.reduce(lm.exp2(z - m_new), "add", axis=None, across=work, scratch=s_sum, sync=meet)
                    m = m_new
                xy = lm.cast(lm.ld(flat, t.r * V + y), lm.f32)
                lm.store(loss, (m + lm.log2(l)) * 0.6931471805599453 - xy, coords=(t.r,))
                inv = lm.rcp(l) * inv_n
                for i in lm.range(lm.cdiv(V, BLK)):
                    x = lm.load(X, coords=(i * BLK, t.r), shape=(BLK,), form="vec", clip=True, fill=-lm.inf)
                    p = lm.exp2(lm.cast(x, lm.f32) * log2e - m) * inv
                    d = lm.where(i * BLK + lm.iota(p, 0) == y, p - inv_n, p)
                    lm.store(dX, lm.cast(d, lm.bf16), coords=(i * BLK, t.r), clip=True)
            else:
                lm.store(loss, 0.0, coords=(t.r,))
                zero = lm.frag(shape=(BLK,), dtype=lm.bf16, form="vec", init=0)
                for i in lm.range(lm.cdiv(V, BLK)):
                    lm.store(dX, zero, coords=(i * BLK, t.r), clip=True)
