@cake.schedule(target="sm_90a")
def fp8(lm, A: LM.tma2d[LM.e4m3], B: LM.tma2d[LM.e4m3], SA: LM.gmem2d[LM.f32].const, SB: LM.gmem1d[LM.f32].const, C: LM.gmem2d[LM.bf16], M: LM.i32, N: LM.i32, K: LM.i32, *, STAGES=4):
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 128 == 0)
    pool = lm.smem(STAGES * 2 * 128 * 128)
    a = pool.view(offset=0, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    b = pool.view(offset=STAGES * 128 * 128, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(M, 128), lm.cdiv(N, 128)), raster="m", swizzle=8)
    with load:
        for t in lm.tiles(sched):
            for k in lm.range(K // 128):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                a.tma_load(A, coords=(k * 128, t.m * 128), stage=s, barrier=full)
                b.tma_load(B, coords=(k * 128, t.n * 128), stage=s, barrier=full)
    with math:
        part = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            row0 = t.m * 128 + 64 * math.index
            acc = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
            for k in lm.range(K // 128):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(part, a[s].rows(64 * math.index, 64), b[s], init=True)
                sa = lm.load(SA, coords=(row0, k), shape=(64,), form="rowvec", like=part)
                sb = lm.ld(SB, t.n)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                acc = acc + part * (sa * sb)
            lm.store(C, lm.cast(acc, lm.bf16), coords=(t.n * 128, row0), mask=lm.in_bounds(acc, rows=M - row0, cols=N - t.n * 128))
