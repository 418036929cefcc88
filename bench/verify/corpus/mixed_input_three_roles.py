"""W8A16: a load warp, a warpgroup that widens the weights in shared memory, and a math warpgroup; two rings in a chain."""


@cake.schedule(target="sm_90a")
def mixed_input_three_roles(lm, A: LM.tma2d[LM.bf16, "M", "K"], B: LM.tma2d[LM.i8, "N", "K"], S: LM.gmem1d[LM.f32, "N"], C: LM.gmem2d[LM.bf16, "M", "N"],
                            M: LM.i32, N: LM.i32, K: LM.i32, *, STAGES=3):
    """W8A16: a load warp, a warpgroup that widens the weights in shared memory, and a math warpgroup; two rings in a chain."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 16 == 0)
    pool = lm.smem(STAGES * (64 * 64 * 2 + 128 * 64) + 2 * 128 * 64 * 2)
    sa = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sq = pool.view(offset=STAGES * 8192, shape=(128, 64), dtype=lm.i8, stage=STAGES)
    sb = pool.view(offset=STAGES * 16384, shape=(128, 64), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=232)
    widen = lm.role(warps=range(4, 8), regs=152)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    afull = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    aempty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    qfull = lm.barrier(pipeline=ring, prod=[load], cons=[widen], arrive="tx")
    qempty = lm.barrier(pipeline=ring, prod=[widen], cons=[load], arrive="warp", primed=True)
    wide = lm.pipeline(stages=2)
    bfull = lm.barrier(pipeline=wide, prod=[widen], cons=[math], arrive="warp")
    bempty = lm.barrier(pipeline=wide, prod=[math], cons=[widen], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 64), lm.cdiv(N, 128)))
    kt = lm.cdiv(K, 64)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(qempty, stage=s)
                sq.tma_load(B, coords=(k * 64, t.n * 128), stage=s, barrier=qfull)
                lm.wait(aempty, stage=s)
                sa.tma_load(A, coords=(k * 64, t.m * 64), stage=s, barrier=afull)
    with widen:
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                lm.wait(qfull, stage=s)
                x = sq[s].load(form="vec")
                lm.arrive(qempty, stage=s)
                w = lm.step(wide)
                lm.wait(bempty, stage=w)
                sb[w].store(lm.cast(lm.cast(x, lm.f32), lm.bf16))
                lm.fence_proxy()
                lm.arrive(bfull, stage=w)
    with math:
        acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            for k in lm.range(kt):
                s = lm.step(ring)
                w = lm.step(wide)
                lm.wait(afull, stage=s)
                lm.wait(bfull, stage=w)
                lm.mma(acc, sa[s], sb[w], init=(k == 0))
                lm.mma_wait(pending=0)
                lm.arrive(aempty, stage=s)
                lm.arrive(bempty, stage=w)
            sc = lm.load(S, coords=(t.n * 128,), shape=(128,), form="colvec", like=acc, clip=True)
            lm.store(C, lm.cast(acc * sc, lm.bf16), coords=(t.n * 128, t.m * 64), clip=True)
