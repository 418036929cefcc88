"""Running sums down the columns: a block adds what the block above it has left, and hands its own last row on through a workspace."""


@cake.schedule(target=("sm_80", "sm_89", "sm_90a"))
def running_sum(lm, X: LM.gmem2d[LM.f32, "ROWS", "D"], Y: LM.gmem2d[LM.f32, "ROWS", "D"], LAST: LM.gmem2d[LM.f32, "ROWS", "D"], READY: LM.gmem1d[LM.i32, "ROWS"].zeroed,
                ROWS: LM.i32, *, D=256, H=4):
    """y[r] = x[0] + .. + x[r]; H rows a tile, row t of LAST holds the sum up to the end of tile t."""
    lm.launch(grid="persistent")
    lm.assume(ROWS % H == 0 and ROWS > 0)
    work = lm.role(warps=range(0, 2))
    sched = lm.scheduler(kind="static", tiles=(ROWS // H,), names=("r",))
    with work:
        for t in lm.tiles(sched):
            total = lm.load(X, coords=(0, t.r * H), shape=(D,)) * 0.0
            if t.r > 0:
                lm.spin(READY, t.r - 1, 1)
                total = total + lm.load(LAST, coords=(0, t.r - 1), shape=(D,))
            for i in lm.range(H):
                total = total + lm.load(X, coords=(0, t.r * H + i), shape=(D,))
                lm.store(Y, total, coords=(0, t.r * H + i))
            lm.store(LAST, total, coords=(0, t.r))
            lm.signal(READY, t.r, 1)
