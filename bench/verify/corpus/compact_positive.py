"""Stream compaction in one launch: blocks hand on where they ended."""


@cake.schedule(target="sm_90a")
def compact_positive(lm, X: LM.gmem1d[LM.f32, "N"], out: LM.gmem1d[LM.f32, "N"], where: LM.gmem1d[LM.i32, "N"], ends: LM.gmem1d[LM.i32, "TILES"], flags: LM.gmem1d[LM.i32, "TILES"].zeroed,
                     N: LM.i32, TILES: LM.i32, *, BLOCK=512):
    """Stream compaction: the positive numbers of X in order and where they stood. A block's base is where the block before it ended."""
    lm.launch(grid="persistent", ctas_per_sm=8)
    lm.assume(TILES == lm.cdiv(N, BLOCK))
    pool = lm.smem(128)
    box = pool.view(offset=0, shape=(1,), dtype=lm.i32)
    work = lm.role(warps=range(0, 1))
    meet = lm.named_barrier(work)
    sched = lm.scheduler(kind="static", tiles=(TILES,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.b * BLOCK,), shape=(BLOCK,), form="vec", clip=True, fill=0)
            keep = lm.where(x > 0.0, 1, 0)
            upto = lm.scan(keep, "add", axis=0)
            box.store(lm.reduce(keep, "add", axis=0))
            lm.sync(meet)
            n = box.ld(0)
            base = 0
            if t.b > 0:
                lm.spin(flags, t.b - 1, 1)
                base = lm.ld(ends, t.b - 1)
            lm.store(ends, base + n, coords=(t.b,))
            lm.signal(flags, t.b, 1)
            to = base + upto - 1
            lm.store(out, x, coords=(to,), mask=x > 0.0, clip=True)
            lm.store(where, lm.iota(x, 0, base=t.b * BLOCK), coords=(to,), mask=x > 0.0, clip=True)
            lm.sync(meet)
