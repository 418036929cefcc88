"""Prefix sums of a long vector in one pass: each block adds what the block before it has published, then publishes its own end."""


@cake.schedule(target=("sm_80", "sm_90a", "sm_100a", "sm_120a"))
def scan_blocks(lm, X: LM.gmem1d[LM.i32, "N"], Y: LM.gmem1d[LM.i32, "N"], ENDS: LM.gmem1d[LM.i32, "NB"], UP: LM.gmem1d[LM.i32, "NB"].zeroed,
                N: LM.i32, NB: LM.i32, *, BLOCK=256):
    """Y[i] = X[0] + .. + X[i]; ENDS[b] is the sum up to the end of block b."""
    lm.launch(grid="persistent")
    lm.assume(N > 0)
    lm.assume(NB == lm.cdiv(N, BLOCK))
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="static", tiles=(NB,), names=("b",))
    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.b * BLOCK,), shape=(BLOCK,), form="vec", clip=True)
            sums = lm.scan(x, "add", axis=1)
            total = lm.reduce(x, "add")
            if t.b > 0:
                lm.spin(UP, t.b - 1, 1)
                before = lm.ld(ENDS, t.b - 1)
                sums = sums + before
                total = total + before
            lm.store(ENDS, total, coords=(t.b,))
            lm.signal(UP, t.b, 1)
            lm.store(Y, sums, coords=(t.b * BLOCK,), clip=True)
