"""Appends new keys to a paged cache: rows of any number a sequence, written in whole pages' rows by bulk copies."""


@cake.schedule(target=("sm_90a", "sm_100a"))
def kv_append(lm, NEW: LM.gmem2d[LM.bf16, "T", "D"], CACHE: LM.gmem2d[LM.bf16, "SLOTS", "D"], CU: LM.gmem1d[LM.i32, "NS1"].const, FIRST: LM.gmem1d[LM.i32, "NS"].const,
              T: LM.i32, SLOTS: LM.i32, NS: LM.i32, NS1: LM.i32, *, D=128, ROWS=16):
    """Rows CU[s] .. CU[s + 1] of NEW go to CACHE from row FIRST[s] on."""
    lm.launch(grid="persistent")
    lm.assume(NS1 == NS + 1)
    lm.assume_values(CU, 0, T + 1, sorted=True)
    lm.assume_values(FIRST, 0, SLOTS)
    pool = lm.smem(2 * ROWS * D * 2)
    rows = pool.view(offset=0, shape=(ROWS, D), dtype=lm.bf16, stage=2)
    move = lm.role(warps=range(0, 1))
    ring = lm.pipeline(stages=2)
    here = lm.named_barrier(move)
    sched = lm.scheduler(kind="static", tiles=(NS,), names=("s",))
    with move:
        for t in lm.tiles(sched):
            lo = lm.ld(CU, t.s)
            n = lm.ld(CU, t.s + 1) - lo
            to = lm.ld(FIRST, t.s)
            for i in lm.range(lm.cdiv(n, ROWS)):
                s = lm.step(ring)
                lm.store_wait(pending=1)
                lm.sync(here)
                x = lm.load(NEW, coords=(0, lo + i * ROWS), shape=(ROWS, D), form="vec", clip=True)
                rows[s].store(x)
                lm.fence_proxy()
                lm.sync(here)
                rows[s].bulk_store(CACHE, coords=(0, to + i * ROWS), rows=lm.min(ROWS, n - i * ROWS))
        lm.store_wait(pending=0)
