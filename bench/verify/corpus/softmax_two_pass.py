"""Softmax of rows too long for registers: one pass for maximum and sum, one to write."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def softmax_two_pass(lm, X: LM.gmem2d[LM.f32, "ROWS", "N"], Y: LM.gmem2d[LM.f32, "ROWS", "N"], ROWS: LM.i32, N: LM.i32, *, BLOCK=1024, WARPS=8):
    """Y = softmax(X) along rows; elements past N count as minus infinity."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(N > 0)
    lm.assume(N % 4 == 0)
    pool = lm.smem(4 * WARPS * 4)
    tops = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    sums = pool.view(offset=2 * WARPS * 4, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS))
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="static", tiles=(ROWS,), names=("r",))
    log2e = 1.4426950408889634

    with work:
        for t in lm.tiles(sched):
            top = lm.frag(shape=(BLOCK,), dtype=lm.f32, form="vec", init=-1e30)
            for j in lm.range(lm.cdiv(N, BLOCK)):
                x = lm.load(X, coords=(j * BLOCK, t.r), shape=(BLOCK,), clip=True, fill=-1e30)
                top = lm.max(top, x)
            s = lm.step(ring)
            m = lm.reduce(top, "max", across=work, scratch=tops[s], sync=cta)
            total = lm.frag(shape=(BLOCK,), dtype=lm.f32, form="vec", init=0.0)
            for j in lm.range(lm.cdiv(N, BLOCK)):
                x = lm.load(X, coords=(j * BLOCK, t.r), shape=(BLOCK,), clip=True, fill=-1e30)
                total = total + lm.exp2((x - m) * log2e)
            z = lm.reduce(total, "add", across=work, scratch=sums[s], sync=cta)
            for j in lm.range(lm.cdiv(N, BLOCK)):
                x = lm.load(X, coords=(j * BLOCK, t.r), shape=(BLOCK,), clip=True, fill=-1e30, cache="stream")
                lm.store(Y, lm.exp2((x - m) * log2e) * lm.rcp(z), coords=(j * BLOCK, t.r), clip=True)
