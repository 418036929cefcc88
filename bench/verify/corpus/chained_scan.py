@cake.schedule(target=("sm_80", "sm_90a"))
def chained_scan(lm, X: LM.gmem2d[LM.f32, "R", "N"], Y: LM.gmem2d[LM.f32, "R", "N"], CARRY: LM.gmem1d[LM.f32, "WORDS"], FLAG: LM.gmem1d[LM.i32, "WORDS"].zeroed,
                 R: LM.i32, N: LM.i32, CH: LM.i32, WORDS: LM.i32, *, CHUNK=1024):
    """Inclusive prefix sums along long rows in one pass: a warp a chunk, which waits for the sum that the chunk in front of it leaves."""
    lm.launch(grid="persistent", ctas_per_sm=16)
    lm.assume(CH == lm.cdiv(N, CHUNK) and WORDS == R * CH)
    work = lm.role(warps=range(0, 1))
    sched = lm.scheduler(kind="static", tiles=(CH, R), names=("c", "r"))

    with work:
        for t in lm.tiles(sched):
            x = lm.load(X, coords=(t.c * CHUNK, t.r), shape=(CHUNK,), form="vec", clip=True, cache="stream")
            y = lm.scan(x, "add", axis=0)
            word = t.r * CH + t.c
            before = 0.0
            if t.c > 0:
                lm.spin(FLAG, word - 1, 1)
                before = lm.ld(CARRY, word - 1)
            lm.store(CARRY, before + lm.reduce(x, "add", axis=0), coords=(word,))
            lm.signal(FLAG, word, 1)
            lm.store(Y, y + before, coords=(t.c * CHUNK, t.r), clip=True)
