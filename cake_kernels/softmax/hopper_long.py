"""Softmax of rows too long for one CTA's registers: a running maximum and sum in each warp, then a second reading."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def softmax_long(lm, X: LM.gmem2d[LM.bf16, "ROWS", "N"], Y: LM.gmem2d[LM.bf16, "ROWS", "N"], ROWS: LM.i32, *, N=131072, WARPS=32, PART=1024, EARLY=False, KEEP=False):
    """y = exp(x - max x) / sum exp(x - max x); each warp has N / WARPS consecutive elements and takes PART of them at a time.

    KEEP has the first reading stay in the caches for the second."""
    lm.launch(grid="persistent")
    lm.assume(N % (WARPS * PART) == 0 and PART % 256 == 0)
    pool = lm.smem(4 * WARPS * 4)
    tops = pool.view(offset=0, shape=(WARPS,), dtype=lm.f32, stage=2)
    sums = pool.view(offset=2 * WARPS * 4, shape=(WARPS,), dtype=lm.f32, stage=2)
    work = lm.role(warps=range(0, WARPS), members=WARPS)
    cta = lm.named_barrier(work)
    ring = lm.pipeline(stages=2)
    sched = lm.scheduler(kind="static", tiles=(ROWS,), names=("r",))
    log2e = 1.4426950408889634
    mine = N // WARPS

    with work:
        if EARLY:
            lm.pdl_launch()                                                         # the next launch sets up while this one ends
            lm.pdl_wait()
        for t in lm.tiles(sched):
            x = lm.cast(lm.load(X, coords=(work.index * mine, t.r), shape=(PART,), form="vec", cache="keep" if KEEP else None), lm.f32)
            m = lm.max(lm.reduce(x, "max") * log2e, -1e30)
            l = lm.reduce(lm.exp2(x * log2e - m), "add")
            for j in lm.range(1, mine // PART):
                x = lm.cast(lm.load(X, coords=(work.index * mine + j * PART, t.r), shape=(PART,), form="vec", cache="keep" if KEEP else None), lm.f32)
                m_new = lm.max(m, lm.reduce(x, "max") * log2e)
                l = l * lm.exp2(m - m_new) + lm.reduce(lm.exp2(x * log2e - m_new), "add")
                m = m_new
            s = lm.step(ring)
            top = lm.reduce(m, "max", across=work, scratch=tops[s], sync=cta)
            total = lm.reduce(l * lm.exp2(m - top), "add", across=work, scratch=sums[s], sync=cta)
            for j in lm.range(0, mine // PART):
                x = lm.cast(lm.load(X, coords=(work.index * mine + j * PART, t.r), shape=(PART,), form="vec", cache="stream"), lm.f32)
                lm.store(Y, lm.cast(lm.exp2(x * log2e - top) * lm.rcp(total), lm.bf16), coords=(work.index * mine + j * PART, t.r), cache="stream")
