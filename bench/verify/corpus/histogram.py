"""Histogram: counts in shared memory, a copy a warp, added up and sent to global memory once a CTA."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"))
def histogram(lm, X: LM.gmem1d[LM.i32, "N"], COUNT: LM.gmem1d[LM.i32, "BINS"].zeroed, N: LM.i32, *, BINS=128, WARPS=4, BLOCK=512):
    """COUNT[b] = how many X[i] are b; values outside 0 .. BINS count nowhere."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    pool = lm.smem(BINS * 4)
    bins = pool.view(offset=0, shape=(BINS,), dtype=lm.i32)
    work = lm.role(warps=range(0, WARPS))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(N, BLOCK),), names=("i",))

    with work:
        zero = lm.frag(shape=(BINS,), dtype=lm.i32, form="vec", init=0)
        bins.store(zero)
        lm.sync(meet)
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.i * BLOCK,), shape=(BLOCK,), form="vec", clip=True, fill=-1)
            one = lm.frag(shape=(BLOCK,), dtype=lm.i32, form="vec", init=1)
            bins.atomic(one, idx=x, op="add")
        lm.sync(meet)
        lm.atomic(COUNT, bins.load(form="vec", like=zero), coords=(0,), op="add")
