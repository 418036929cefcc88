@cake.schedule(target="sm_90a")
def w8a16_swapped_wgmma(lm, W: LM.tma2d[LM.i8, "N", "K"], X: LM.tma2d[LM.bf16, "M", "K"], SW: LM.gmem1d[LM.f32, "N"], YT: LM.gmem2d[LM.bf16, "N", "M"], M: LM.i32, N: LM.i32, K: LM.i32, *,
                        BT=32, BK=128, STAGES=4):
    """Few tokens, int8 weights: the weights are the rows of the product, widened in registers on their way into wgmma; the scale of a row comes last."""
    lm.launch(grid="persistent")
    lm.assume(K > 0)
    lm.assume(K % 16 == 0)
    w_bytes, x_bytes = STAGES * 128 * BK, STAGES * BT * BK * 2
    pool = lm.smem(w_bytes + x_bytes)
    smem_w = pool.view(offset=0, shape=(128, BK), dtype=lm.i8, stage=STAGES, swizzle="128b")
    smem_x = pool.view(offset=w_bytes, shape=(BT, BK), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=216, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    wfull = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    xfull = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    wempty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="warp", primed=True)
    xempty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(N, 128), lm.cdiv(M, BT)), names=("n", "m"))
    kt = lm.cdiv(K, BK)

    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(wempty, stage=s)
                smem_w.tma_load(W, coords=(k * BK, t.n * 128), stage=s, barrier=wfull)
                lm.wait(xempty, stage=s)
                smem_x.tma_load(X, coords=(k * BK, t.m * BT), stage=s, barrier=xfull)

    with math:
        acc = lm.frag(shape=(64, BT), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            row = t.n * 128 + 64 * math.index
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(wfull, stage=s)
                w = smem_w[s].rows(64 * math.index, 64).load(form="acc")
                lm.arrive(wempty, stage=s)
                a = lm.cast(lm.cast(w, lm.f32), lm.bf16, form="a")
                lm.wait(xfull, stage=s)
                lm.mma(acc, a, smem_x[s], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(xempty, stage=s)
            sw = lm.load(SW, coords=(row,), shape=(64,), form="rowvec", like=acc, clip=True)
            lm.store(YT, lm.cast(acc * sw, lm.bf16), coords=(t.m * BT, row), clip=True)
