"""Mamba-2 chunk scan: y = (C B^T * decay * dt) x + exp(cum) C state, chunks of 64 positions."""


@cake.schedule(target="sm_90a")
def mamba_chunk_scan(lm, C: LM.tma4d[LM.bf16, "B", "NC", 64, "DS"], BM: LM.tma4d[LM.bf16, "B", "NC", 64, "DS"], X: LM.tma4d[LM.bf16, "B", "H", "L", "P"],
                     STATE: LM.tma4d[LM.bf16, "BNC", "H", "P", "DS"], DACS: LM.gmem3d[LM.f32, "B", "H", "L"], DT: LM.gmem3d[LM.f32, "B", "H", "L"],
                     Y: LM.gmem4d[LM.bf16, "B", "H", "L", "P"], B: LM.i32, H: LM.i32, NC: LM.i32, L: LM.i32, BNC: LM.i32, *, DS=128, P=64):
    """Mamba-2 chunk scan: y = (C B^T * decay * dt) x + exp(cum) C state, chunks of 64 positions."""
    lm.launch(grid="persistent")
    lm.assume(BNC == B * NC and L == NC * 64)
    cb = 64 * DS * 2
    pool = lm.smem(2 * (2 * cb + 64 * P * 2 + P * DS * 2))
    c = pool.view(offset=0, shape=(64, DS), dtype=lm.bf16, stage=2, swizzle="128b")
    b = pool.view(offset=2 * cb, shape=(64, DS), dtype=lm.bf16, stage=2, swizzle="128b")
    x = pool.view(offset=4 * cb, shape=(64, P), dtype=lm.bf16, stage=2, swizzle="128b")
    st = pool.view(offset=4 * cb + 2 * 64 * P * 2, shape=(P, DS), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=232)
    load = lm.role(warps=range(4, 8), regs=40)
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(H, NC, B), names=("h", "c", "b"))
    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            c.tma_load(C, coords=(0, 0, t.c, t.b), stage=s, barrier=full)
            b.tma_load(BM, coords=(0, 0, t.c, t.b), stage=s, barrier=full)
            x.tma_load(X, coords=(0, t.c * 64, t.h, t.b), stage=s, barrier=full)
            st.tma_load(STATE, coords=(0, 0, t.h, t.b * NC + t.c), stage=s, barrier=full)
    with math:
        g = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        y = lm.frag(shape=(64, P), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            row = lm.load(DACS, coords=(t.c * 64, t.h, t.b), shape=(64,), form="rowvec", like=g)
            col = lm.load(DACS, coords=(t.c * 64, t.h, t.b), shape=(64,), form="colvec", like=g)
            dt = lm.load(DT, coords=(t.c * 64, t.h, t.b), shape=(64,), form="colvec", like=g)
            s = lm.step(ring)
            lm.wait(full, stage=s)
            lm.mma(g, c[s], b[s], init=True)
            lm.mma(y, c[s], st[s], init=True)
            lm.mma_wait(pending=1)
            keep = lm.iota(g, 1) <= lm.iota(g, 0)
            p = lm.where(keep, g * lm.exp(row - col) * dt, 0.0)
            lm.mma_wait(pending=0)
            y = y * lm.exp(row)
            lm.mma(y, lm.cast(p, lm.bf16, form="a"), x[s].T)
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=s)
            lm.store(Y, lm.cast(y, lm.bf16), coords=(0, t.c * 64, t.h, t.b))
