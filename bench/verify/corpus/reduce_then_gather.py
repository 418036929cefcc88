@cake.schedule(target="sm_90a")
def reduce_then_gather(lm, X: LM.gmem2d[LM.bf16, "RANKS", "N"], RED: LM.gmem1d[LM.f32, "N"], Y: LM.gmem2d[LM.bf16, "RANKS", "N"], DONE: LM.gmem1d[LM.i32, "MARKS"].zeroed,
                       RANKS: LM.i32, N: LM.i32, MARKS: LM.i32, *, PIECE=2048):
    """An all-reduce in two strokes: a piece of the sum is made by one block and announced, then every rank's copy of a piece waits for its announcement."""
    lm.launch(grid="persistent")
    lm.assume(RANKS >= 1 and N % PIECE == 0 and MARKS == N // PIECE)
    crew = lm.role(warps=range(0, 8))
    pieces = N // PIECE
    sched = lm.scheduler(kind="static", tiles=(pieces, RANKS + 1), names=("piece", "stroke"))
    with crew:
        for t in lm.tiles(sched):
            col = t.piece * PIECE
            if t.stroke == 0:
                total = lm.cast(lm.load(X, coords=(col, 0), shape=(PIECE,), form="vec", cache="stream"), lm.f32)
                for r in lm.range(1, RANKS):
                    total = total + lm.cast(lm.load(X, coords=(col, r), shape=(PIECE,), form="vec", cache="stream"), lm.f32)
                lm.store(RED, total, coords=(col,))
                lm.signal(DONE, t.piece, 1)
            else:
                lm.spin(DONE, t.piece, 1)
                ready = lm.load(RED, coords=(col,), shape=(PIECE,), form="vec")
                lm.store(Y, lm.cast(ready, lm.bf16), coords=(col, t.stroke - 1))
