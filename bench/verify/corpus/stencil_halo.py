"""Three-point smoothing down the rows of images: tiles with a halo row on both sides arrive through a ring, the copy engine fills what lies outside."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def stencil_halo(lm, X: LM.tma3d[LM.f32, "B", "H", "W"], Y: LM.gmem3d[LM.f32, "B", "H", "W"], B: LM.i32, H: LM.i32, W: LM.i32, c0: LM.f32, c1: LM.f32,
                 *, TH=8, TW=64, STAGES=2):
    """y[b, i, j] = c0 x[b, i, j] + c1 (x[b, i - 1, j] + x[b, i + 1, j])."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(W % 4 == 0)
    pool = lm.smem(STAGES * (TH + 2) * TW * 4)
    tile = pool.view(offset=0, shape=(TH + 2, TW), dtype=lm.f32, stage=STAGES)
    load = lm.role(warps=range(0, 1))
    calc = lm.role(warps=range(1, 5), members=4)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[calc], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[calc], cons=[load], arrive="warp", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(W, TW), lm.cdiv(H, TH), B), names=("x", "y", "b"))
    each = TH // 4

    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            tile.tma_load(X, coords=(t.x * TW, t.y * TH - 1, t.b), stage=s, barrier=full)

    with calc:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            first = calc.index * each
            above = tile[s].rows(first, 1).load(form="vec")
            here = tile[s].rows(first + 1, 1).load(form="vec", like=above)
            for i in lm.static_range(each):
                below = tile[s].rows(first + i + 2, 1).load(form="vec", like=above)
                lm.store(Y, c0 * here + c1 * (above + below), coords=(t.x * TW, t.y * TH + first + i, t.b), clip=True)
                above = here
                here = below
            lm.arrive(empty, stage=s)
