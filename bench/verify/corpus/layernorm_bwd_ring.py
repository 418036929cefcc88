@cake.schedule(target="sm_90a")
def layernorm_bwd_ring(lm, DY: LM.gmem2d[LM.bf16, "R", "D"], X: LM.gmem2d[LM.bf16, "R", "D"], GAMMA: LM.gmem1d[LM.f32, "D"], MEAN: LM.gmem1d[LM.f32, "R"], RSTD: LM.gmem1d[LM.f32, "R"],
                       DX: LM.gmem2d[LM.bf16, "R", "D"], DG: LM.gmem1d[LM.f32, "D"].zeroed, DB: LM.gmem1d[LM.f32, "D"].zeroed, R: LM.i32, *, D=1024, STAGES=4):
    """Backward of a layer norm: rows come through a ring, sums for gamma and beta stay in registers until the block has no more rows, then go to memory by atomics."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    pool = lm.smem(2 * STAGES * D * 2 + 2 * 4 * 4)
    smem_y = pool.view(offset=0, shape=(1, D), dtype=lm.bf16, stage=STAGES)
    smem_x = pool.view(offset=STAGES * D * 2, shape=(1, D), dtype=lm.bf16, stage=STAGES)
    part = pool.view(offset=2 * STAGES * D * 2, shape=(4,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[load], arrive="warp", primed=True)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(R,), names=("r",))

    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            smem_y.bulk_load(DY, offset=t.r * D, n=D, stage=s, barrier=full)
            smem_x.bulk_load(X, offset=t.r * D, n=D, stage=s, barrier=full)

    with work:
        gamma = lm.load(GAMMA, coords=(0,), shape=(D,), form="vec")
        dg = lm.frag(shape=(D,), dtype=lm.f32, form="vec", like=gamma, init=0.0)
        db = lm.frag(shape=(D,), dtype=lm.f32, form="vec", like=gamma, init=0.0)
        for t in lm.tiles(sched):
            mean = lm.ld(MEAN, t.r)
            rstd = lm.ld(RSTD, t.r)
            s = lm.step(ring)
            lm.wait(full, stage=s)
            dy = lm.cast(smem_y[s].load(form="vec", like=gamma), lm.f32)
            x = lm.cast(smem_x[s].load(form="vec", like=gamma), lm.f32)
            lm.arrive(empty, stage=s)
            hat = (x - mean) * rstd
            wdy = dy * gamma
            c1 = lm.reduce(wdy * hat, "add", axis=None, across=work, scratch=part[0], sync=meet) * (1.0 / D)
            c2 = lm.reduce(wdy, "add", axis=None, across=work, scratch=part[1], sync=meet) * (1.0 / D)
            lm.store(DX, lm.cast((wdy - hat * c1 - c2) * rstd, lm.bf16), coords=(0, t.r))
            dg = dg + dy * hat
            db = db + dy
        lm.atomic(DG, dg, coords=(0,), op="add", order="any")
        lm.atomic(DB, db, coords=(0,), op="add", order="any")
