@cake.schedule(target=("sm_80", "sm_90a"))
def moe_align_count(lm, IDS: LM.gmem1d[LM.i32, "N"], COUNT: LM.gmem1d[LM.i32, 256], FIRST: LM.gmem1d[LM.i32, 256], TOTAL: LM.gmem1d[LM.i32, 1], N: LM.i32, E: LM.i32, *, BLOCK=16, WARPS=8):
    """First half of align-and-sort for grouped experts: a histogram of the chosen experts, padded to whole blocks, and its exclusive prefix sums."""
    lm.launch(grid="tiles")
    lm.assume(E > 0 and E <= 256)
    lm.assume_values(IDS, 0, E)
    pool = lm.smem(1024)
    hist = pool.view(offset=0, shape=(256,), dtype=lm.i32)
    count = lm.role(warps=range(0, WARPS))
    prefix = lm.role(warps=range(WARPS, WARPS + 1))
    clear = lm.named_barrier(count)
    both = lm.named_barrier([count, prefix])
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("one",))
    chunk = WARPS * 128

    with count:
        for t in lm.tiles(sched):
            hist.store(lm.frag(shape=(256,), dtype=lm.i32, form="vec", init=0))
            lm.sync(clear)
            for c in lm.range(lm.cdiv(N, chunk)):
                ids = lm.load(IDS, coords=(c * chunk,), shape=(chunk,), form="vec", clip=True, fill=-1)
                ones = lm.frag(shape=(chunk,), dtype=lm.i32, form="vec", like=ids, init=1)
                hist.atomic(ones, ids, op="add")
            lm.sync(both)

    with prefix:
        for t in lm.tiles(sched):
            lm.sync(both)
            n = hist.load(form="vec")
            padded = (n + BLOCK - 1) // BLOCK * BLOCK
            upto = lm.scan(padded, "add", axis=0)
            lm.store(COUNT, n, coords=(0,))
            lm.store(FIRST, upto - padded, coords=(0,))
            lm.store(TOTAL, lm.reduce(padded, "add", axis=0), coords=(0,))
