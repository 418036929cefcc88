"""Residual addition and RMSNorm by bulk copies alone: rows arrive and leave whole, results take the place of what was read."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a"))
def add_rmsnorm_bulk(lm, X: LM.gmem2d[LM.bf16, "ROWS", "D"], R: LM.gmem2d[LM.bf16, "ROWS", "D"], W: LM.gmem1d[LM.bf16, "D"].const,
                     Y: LM.gmem2d[LM.bf16, "ROWS", "D"], ROWS: LM.i32, eps: LM.f32, *, D=4096, WARPS=8, CTAS=2, STAGES=4):
    """r = bf16(x + r) in place, y = r * rsqrt(mean(r^2) + eps) * w, one row a slot."""
    lm.launch(grid="persistent", ctas_per_sm=CTAS)
    lm.assume(D % (WARPS * 32 * 8) == 0)
    pool = lm.smem(2 * STAGES * D * 2 + 2 * WARPS * 4)
    x_row = pool.view(offset=0, shape=(1, D), dtype=lm.bf16, stage=STAGES)
    r_row = pool.view(offset=STAGES * D * 2, shape=(1, D), dtype=lm.bf16, stage=STAGES)
    part = pool.view(offset=2 * STAGES * D * 2, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    load = lm.role(warps=range(WARPS, WARPS + 1))
    rows = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=rows, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=rows, prod=[work], cons=[load], arrive="member", primed=True)
    ring = lm.pipeline(stages=2)
    cta = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(ROWS,), names=("r",))

    with load:
        lm.pdl_wait()
        for t in lm.tiles(sched):
            s = lm.step(rows)
            lm.wait(empty, stage=s)
            x_row.bulk_load(X, offset=t.r * D, n=D, stage=s, barrier=full)
            r_row.bulk_load(R, offset=t.r * D, n=D, stage=s, barrier=full)

    with work:
        lm.pdl_launch()
        w = lm.load(W, coords=(0,), shape=(D,), form="vec", cache="keep")
        lm.pdl_wait()
        for t in lm.tiles(sched):
            s = lm.step(rows)
            lm.wait(full, stage=s)
            h = lm.cast(lm.cast(x_row[s].load(form="vec"), lm.f32) + lm.cast(r_row[s].load(form="vec"), lm.f32), lm.bf16)
            hf = lm.cast(h, lm.f32)
            c = lm.step(ring)
            ss = lm.reduce(hf * hf, "add", across=work, scratch=part[c], sync=cta)
            y = hf * lm.rsqrt(ss * (1.0 / D) + eps) * lm.cast(w, lm.f32)
            r_row[s].store(h)
            x_row[s].store(lm.cast(y, lm.bf16))
            lm.fence_proxy()
            lm.sync(cta)
            r_row[s].bulk_store(R, coords=(0, t.r), rows=1)
            x_row[s].bulk_store(Y, coords=(0, t.r), rows=1)
            lm.store_wait(pending=0)                                                # both have been read
            lm.arrive(empty, stage=s)
        lm.store_wait(pending=0, read=False)
