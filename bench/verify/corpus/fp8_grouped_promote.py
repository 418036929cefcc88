@cake.schedule(target="sm_90a")
def fp8_grouped_promote(lm, X: LM.tma2d[LM.e4m3, "ROWS", "K"], W: LM.tma3d[LM.e4m3, "E", "N", "K"], SX: LM.gmem2d[LM.f32, "KB", "ROWS"].const, SW: LM.gmem1d[LM.f32, "SWN"].const,
                        OFFS: LM.gmem1d[LM.i32].const, Y: LM.gmem2d[LM.bf16, "ROWS", "N"], ROWS: LM.i32, E: LM.i32, N: LM.i32, K: LM.i32, KB: LM.i32, SWN: LM.i32, *, STAGES=4):
    """Experts over an offset table: fp8 products of 128 deep blocks, promoted to f32 with a scale a token and block and one a weight block."""
    lm.launch(grid="persistent")
    lm.assume(K > 0 and K % 128 == 0 and N % 128 == 0)
    lm.assume(KB == K // 128 and SWN == E * (N // 128) * KB)
    lm.assume_values(OFFS, 0, ROWS + 1, sorted=True)
    pool = lm.smem(STAGES * 2 * 128 * 128)
    xs = pool.view(offset=0, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    ws = pool.view(offset=STAGES * 128 * 128, shape=(128, 128), dtype=lm.e4m3, stage=STAGES, swizzle="128b")
    consumers = lm.role(warps=range(0, 8), regs=224, members=2)
    producer = lm.role(warps=range(8, 12), regs=40)
    pipe = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=pipe, prod=[producer], cons=[consumers], arrive="tx")
    empty = lm.barrier(pipeline=pipe, prod=[consumers], cons=[producer], arrive="warp", primed=True)
    sched = lm.scheduler(kind="grouped", offsets=OFFS, block=128, tiles=(N // 128,), raster="m", swizzle=8)

    with producer:
        for t in lm.tiles(sched):
            for kb in lm.range(KB):
                s = lm.step(pipe)
                lm.wait(empty, stage=s)
                xs.tma_load(X, coords=(kb * 128, t.row0), stage=s, barrier=full)
                ws.tma_load(W, coords=(kb * 128, t.n * 128, t.group), stage=s, barrier=full)

    with consumers:
        mine = 64 * consumers.index
        part = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            total = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
            local = lm.iota(total, axis=0, base=mine)
            live = local < t.rows
            for kb in lm.range(KB):
                sx = lm.load(SX, coords=(t.row0 + mine, kb), shape=(64,), form="rowvec", like=total, mask=live)
                sw = lm.ld(SW, (t.group * (N // 128) + t.n) * KB + kb)
                s = lm.step(pipe)
                lm.wait(full, stage=s)
                lm.mma(part, xs[s].rows(mine, 64), ws[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
                total = total + part * (sx * sw)
            lm.store(Y, lm.cast(total, lm.bf16), coords=(t.n * 128, t.row0 + mine), mask=live)
