"""Pages of a latent cache copied to where a prefill reads them in one piece: no thread touches an element."""
@cake.schedule(target=("sm_90a", "sm_100a"))
def gather_pages_contiguous(lm, CACHE: LM.gmem3d[LM.bf16, "PAGES", 16, 576], TABLE: LM.gmem1d[LM.i32, "BP"], CU: LM.gmem1d[LM.i32, "B1"], OUT: LM.gmem2d[LM.bf16, "TOKENS", 576],
                            PAGES: LM.i32, B: LM.i32, B1: LM.i32, BP: LM.i32, MAXP: LM.i32, TOKENS: LM.i32, *, STAGES=6):
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(B1 == B + 1 and BP == B * MAXP)
    lm.assume_values(TABLE, 0, PAGES)
    lm.assume_values(CU, 0, TOKENS + 1, sorted=True)
    pool = lm.smem(STAGES * 16 * 576 * 2)
    page = pool.view(offset=0, shape=(16, 576), dtype=lm.bf16, stage=STAGES)
    fetch = lm.role(warps=range(0, 1))
    put = lm.role(warps=range(1, 2))
    ring = lm.pipeline(stages=STAGES)
    here = lm.barrier(pipeline=ring, prod=[fetch], cons=[put], arrive="tx")
    gone = lm.barrier(pipeline=ring, prod=[put], cons=[fetch], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(MAXP, B), names=("p", "b"))
    with fetch:
        for t in lm.tiles(sched):
            n = lm.ld(CU, t.b + 1) - lm.ld(CU, t.b)
            if t.p * 16 < n:
                s = lm.step(ring)
                p = lm.ld(TABLE, t.b * MAXP + t.p)
                lm.wait(gone, stage=s)
                page.bulk_load(CACHE, offset=p * 16 * 576, n=16 * 576, stage=s, barrier=here)
    with put:
        for t in lm.tiles(sched):
            first = lm.ld(CU, t.b)
            n = lm.ld(CU, t.b + 1) - first
            if t.p * 16 < n:
                s = lm.step(ring)
                lm.wait(here, stage=s)
                page[s].bulk_store(OUT, coords=(0, first + t.p * 16), rows=lm.min(16, n - t.p * 16))
                lm.store_wait(pending=0)
                lm.arrive(gone, stage=s)
        lm.store_wait(pending=0)
