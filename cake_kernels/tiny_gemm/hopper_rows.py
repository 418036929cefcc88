"""GEMM of one, four or eight rows without tensor cores or shared-memory tiles: a CTA a column, every load of it in flight at once."""


@cake.schedule(target="sm_90a")
def tiny_gemm_rows(lm, X: LM.gmem2d[LM.bf16, "M", "K"], W: LM.gmem2d[LM.bf16, "N", "K"].const, Y: LM.gmem2d[LM.bf16, "M", "N"],
                   M: LM.i32, N: LM.i32, K: LM.i32, *, MR=4, KC=3072, WARPS=12, CTAS=2, EARLY=True):
    """Y[m,n] = sum over k of X[m,k] W[n,k]; KC >= K columns over all threads, then one sum over the CTA a row."""
    lm.launch(grid="tiles", ctas_per_sm=CTAS)
    lm.assume(K > 0)
    lm.assume(M <= MR and K <= KC and K % 8 == 0)
    pool = lm.smem(MR * WARPS * 4)
    scratch = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=MR)
    work = lm.role(warps=range(0, WARPS))
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(N,), names=("n",))

    with work:
        if EARLY:
            lm.pdl_launch()                                                      # the next kernel starts and fetches its weights meanwhile
        for t in lm.tiles(sched):
            w = lm.load(W, coords=(0, t.n), shape=(KC,), form="vec", cache="stream", clip=True)
            lm.pdl_wait()
            x0 = lm.load(X, coords=(0, 0), shape=(KC,), form="vec", like=w, clip=True)
            if MR > 1:
                x1 = lm.load(X, coords=(0, 1), shape=(KC,), form="vec", like=w, clip=True)
                x2 = lm.load(X, coords=(0, 2), shape=(KC,), form="vec", like=w, clip=True)
                x3 = lm.load(X, coords=(0, 3), shape=(KC,), form="vec", like=w, clip=True)
            if MR > 4:
                x4 = lm.load(X, coords=(0, 4), shape=(KC,), form="vec", like=w, clip=True)
                x5 = lm.load(X, coords=(0, 5), shape=(KC,), form="vec", like=w, clip=True)
                x6 = lm.load(X, coords=(0, 6), shape=(KC,), form="vec", like=w, clip=True)
                x7 = lm.load(X, coords=(0, 7), shape=(KC,), form="vec", like=w, clip=True)
            y0 = lm.reduce(lm.cast(x0, lm.f32) * lm.cast(w, lm.f32), "add", axis=None, across=work, scratch=scratch[0], sync=cta)
            lm.store(Y, lm.cast(y0, lm.bf16), coords=(t.n, 0))
            if MR > 1:
                y1 = lm.reduce(lm.cast(x1, lm.f32) * lm.cast(w, lm.f32), "add", axis=None, across=work, scratch=scratch[1], sync=cta)
                if M > 1:
                    lm.store(Y, lm.cast(y1, lm.bf16), coords=(t.n, 1))
                y2 = lm.reduce(lm.cast(x2, lm.f32) * lm.cast(w, lm.f32), "add", axis=None, across=work, scratch=scratch[2], sync=cta)
                if M > 2:
                    lm.store(Y, lm.cast(y2, lm.bf16), coords=(t.n, 2))
                y3 = lm.reduce(lm.cast(x3, lm.f32) * lm.cast(w, lm.f32), "add", axis=None, across=work, scratch=scratch[3], sync=cta)
                if M > 3:
                    lm.store(Y, lm.cast(y3, lm.bf16), coords=(t.n, 3))
            if MR > 4:
                y4 = lm.reduce(lm.cast(x4, lm.f32) * lm.cast(w, lm.f32), "add", axis=None, across=work, scratch=scratch[4], sync=cta)
                if M > 4:
                    lm.store(Y, lm.cast(y4, lm.bf16), coords=(t.n, 4))
                y5 = lm.reduce(lm.cast(x5, lm.f32) * lm.cast(w, lm.f32), "add", axis=None, across=work, scratch=scratch[5], sync=cta)
                if M > 5:
                    lm.store(Y, lm.cast(y5, lm.bf16), coords=(t.n, 5))
                y6 = lm.reduce(lm.cast(x6, lm.f32) * lm.cast(w, lm.f32), "add", axis=None, across=work, scratch=scratch[6], sync=cta)
                if M > 6:
                    lm.store(Y, lm.cast(y6, lm.bf16), coords=(t.n, 6))
                y7 = lm.reduce(lm.cast(x7, lm.f32) * lm.cast(w, lm.f32), "add", axis=None, across=work, scratch=scratch[7], sync=cta)
                if M > 7:
                    lm.store(Y, lm.cast(y7, lm.bf16), coords=(t.n, 7))
