@cake.schedule(target=("sm_120a", "sm_121a"))
def softmax_clc_sm120(lm, X: LM.gmem2d[LM.f32, "ROWS", "N"], Y: LM.gmem2d[LM.f32, "ROWS", "N"], ROWS: LM.i32, N: LM.i32, temperature: LM.f32, *, BLOCK=1024, WARPS=4):
    """Rows of any length, tiles from the hardware: one pass for maximum and sum, a second one writes."""
    lm.launch(grid="persistent", ctas_per_sm=4)
    lm.assume(N > 0)
    pool = lm.smem(1024)
    tops = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    sums = pool.view(offset=512, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    asks = lm.role(warps=range(WARPS, WARPS + 1))
    turn = lm.pipeline(stages=2)
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="clc", tiles=(ROWS,), names=("r",), fetch=asks)
    blocks = lm.cdiv(N, BLOCK)
    with asks:
        for t in lm.tiles(sched):
            pass
    with work:
        inv_t = 1.4426950408889634 / temperature
        for t in lm.tiles(sched):
            top = -lm.inf
            total = 0.0
            for b in lm.range(blocks):
                x = lm.load(X, coords=(b * BLOCK, t.r), shape=(BLOCK,), form="vec", clip=True, fill=-lm.inf)
                s = lm.step(turn)
                high = lm.max(top, lm.reduce(x, "max", across=work, scratch=tops[s], sync=meet) * inv_t)
                part = lm.reduce(lm.exp2(x * inv_t - high), "add", across=work, scratch=sums[s], sync=meet)
                total = total * lm.exp2(top - high) + part
                top = high
            scale = lm.rcp(total)
            for b in lm.range(blocks):
                x = lm.load(X, coords=(b * BLOCK, t.r), shape=(BLOCK,), form="vec", clip=True)
                lm.store(Y, lm.exp2(x * inv_t - top) * scale, coords=(b * BLOCK, t.r), clip=True)
