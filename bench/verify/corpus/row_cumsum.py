"""Cumulative sums along rows of any length: each warp is a member with a row of its own, chunks through a ring of bulk copies, the carry in a register."""


@cake.schedule(target=("sm_90a", "sm_100a", "sm_120a"))
def row_cumsum(lm, X: LM.gmem2d[LM.f32, "ROWS", "N"], Y: LM.gmem2d[LM.f32, "ROWS", "N"], ROWS: LM.i32, N: LM.i32, *, BLOCK=128, STAGES=3, WARPS=4):
    """Y[r, i] = X[r, 0] + .. + X[r, i]."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(N > 0 and ROWS > 0)
    lm.assume(N % BLOCK == 0)
    lm.assume(ROWS % WARPS == 0)
    pool = lm.smem(STAGES * WARPS * BLOCK * 4)
    chunk = pool.view(offset=0, shape=(WARPS, BLOCK), dtype=lm.f32, stage=STAGES)
    fetch = lm.role(warps=range(0, 1))
    work = lm.role(warps=range(1, 1 + WARPS), members=WARPS)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[fetch], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[work], cons=[fetch], arrive="member", primed=True)
    rows = lm.scheduler(kind="static", tiles=(ROWS // WARPS,), names=("r",))

    with fetch:
        for t in lm.tiles(rows):
            for c in lm.range(N // BLOCK):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                for w in lm.static_range(WARPS):
                    chunk.rows(w, 1).bulk_load(X, offset=(t.r * WARPS + w) * N + c * BLOCK, n=BLOCK, stage=s, barrier=full)

    with work:
        for t in lm.tiles(rows):
            carry = 0.0
            for c in lm.range(N // BLOCK):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                x = chunk[s].rows(work.index, 1).load(form="vec")
                lm.arrive(empty, stage=s)
                sums = lm.scan(x, "add", axis=1)
                lm.store(Y, sums + carry, coords=(c * BLOCK, t.r * WARPS + work.index))
                carry = carry + lm.reduce(x, "add")
