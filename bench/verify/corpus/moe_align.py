"""moe_align_block_size in one CTA: tokens an expert, padded to whole blocks, and the exclusive prefix of the padded counts."""


@cake.schedule(target=("sm_80", "sm_90a"))
def moe_align(lm, EXPERT: LM.gmem1d[LM.i32, "P"], COUNT: LM.gmem1d[LM.i32, "E"], OFFS: LM.gmem1d[LM.i32, "E1"], P: LM.i32, E1: LM.i32, *, E=64, CHUNK=1024):
    """moe_align_block_size in one CTA: tokens an expert, padded to whole blocks, and the exclusive prefix of the padded counts."""
    lm.launch(grid="tiles")
    lm.assume(E1 == E + 1)
    pool = lm.smem(E * 4)
    bins = pool.view(offset=0, shape=(E,), dtype=lm.i32)
    work = lm.role(warps=range(0, 4))
    first = lm.role(warps=range(4, 5))
    meet = lm.named_barrier([work, first])
    all4 = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(1,), names=("x",))
    with work:
        for t in lm.tiles(sched):
            bins.store(lm.frag(shape=(E,), dtype=lm.i32, form="vec", init=0))
            lm.sync(all4)
            for c in lm.range(lm.cdiv(P, CHUNK)):
                e = lm.load(EXPERT, coords=(c * CHUNK,), shape=(CHUNK,), form="vec", clip=True, fill=-1)
                one = lm.frag(shape=(CHUNK,), dtype=lm.i32, form="vec", init=1, like=e)
                bins.atomic(one, e)
            lm.sync(meet)
    with first:
        for t in lm.tiles(sched):
            lm.sync(meet)
            n = bins.load(form="vec")
            lm.store(COUNT, n, coords=(0,))
            padded = (n + 63) >> 6 << 6
            upto = lm.scan(padded, "add", axis=0)
            lm.store(OFFS, upto - padded, coords=(0,))
            lm.store(OFFS, lm.reduce(padded, "add", axis=0), coords=(E,))
