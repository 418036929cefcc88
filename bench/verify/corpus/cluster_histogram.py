"""A histogram by four CTAs: each counts a part of the row and sums a part of the bins that its peers sent."""


@cake.schedule(target=("sm_90a", "sm_100a"))
def cluster_histogram(lm, X: LM.gmem2d[LM.i32, "B", "L"], H: LM.gmem2d[LM.i32, "B", "BINS"], B: LM.i32, L: LM.i32, *, BINS=256, CH=512, WARPS=4):
    """Counts of 256 values a row by four CTAs: each counts a quarter of the row in its own shared memory, then sums a quarter of the bins that the peers sent."""
    lm.launch(grid="tiles", cluster=(4, 1))
    lm.assume_values(X, 0, BINS)
    part = BINS // 4
    pool = lm.smem(2 * BINS * 4)
    mine = pool.view(offset=0, shape=(BINS,), dtype=lm.i32)
    got = pool.view(offset=BINS * 4, shape=(BINS,), dtype=lm.i32)
    work = lm.role(warps=range(0, WARPS))
    ring = lm.pipeline(stages=1)
    landed = lm.barrier(pipeline=ring, prod=[work], cons=[work], arrive="tx", scope="cluster")
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(4, B), names=("part", "b"))
    quarter = lm.cdiv(lm.cdiv(L, 4), 4) * 4
    with work:
        for t in lm.tiles(sched):
            rank = lm.cta_rank()
            zero = lm.frag(shape=(BINS,), dtype=lm.i32, form="vec", init=0)
            mine.store(zero)
            lm.sync(meet)
            lo = lm.min(t.part * quarter, L)
            hi = lm.min(lo + quarter, L)
            for i in lm.range(lm.cdiv(hi - lo, CH)):
                x = lm.load(X, coords=(lo + i * CH, t.b), shape=(CH,), form="vec", mask=None, clip=True, fill=-1)
                at = lm.iota(x, 0, base=lo + i * CH)
                mine.atomic(lm.where(at < hi, 1, 0), lm.max(x, 0), op="add")
            lm.sync(meet)
            s = lm.step(ring)
            for c in lm.static_range(4):
                counts = mine.cols(c * part, part).load(form="vec")
                got.cols(rank * part, part).send(counts, cta=c, barrier=landed, stage=s)
            lm.wait(landed, stage=s)
            total = got.cols(0, part).load(form="vec")
            for r in lm.static_range(1, 4):
                total = total + got.cols(r * part, part).load(form="vec")
            lm.store(H, total, coords=(rank * part, t.b))
