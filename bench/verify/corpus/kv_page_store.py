"""Moves whole pages of keys into a paged cache (HND), page numbers from memory, the copy engine on both sides."""


@cake.schedule(target="sm_90a")
def kv_page_store(lm, X: LM.tma3d[LM.bf16, "T", "HK", "D"], CACHE: LM.tma4d[LM.bf16, "PAGES", "HK", "PS", "D"], PAGE: LM.gmem1d[LM.i32, "NB"], T: LM.i32, HK: LM.i32, PAGES: LM.i32, NB: LM.i32,
                  *, D=128, PS=64, STAGES=3):
    """Moves whole pages of keys into a paged cache (HND), page numbers from memory, the copy engine on both sides."""
    lm.launch(grid="persistent")
    lm.assume(T == NB * PS)
    lm.assume_values(PAGE, 0, PAGES)
    pool = lm.smem(STAGES * PS * D * 2)
    x = pool.view(offset=0, shape=(PS, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    load = lm.role(warps=range(0, 1))
    store = lm.role(warps=range(1, 2))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[store], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[store], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(HK, NB), names=("h", "b"))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            x.tma_load(X, coords=(0, t.h, t.b * PS), box=(D, 1, PS), stage=s, barrier=full, cache="stream")
    with store:
        for t in lm.tiles(sched):
            page = lm.ld(PAGE, t.b)
            s = lm.step(ring)
            lm.wait(full, stage=s)
            x[s].tma_store(CACHE, coords=(0, 0, t.h, page))
            lm.store_wait(pending=0)
            lm.arrive(empty, stage=s)
