@cake.schedule(target="sm_90a")
def embedding_bwd_reduce(lm, DY: LM.tma2d[LM.f32, "T", "D"], IDX: LM.gmem1d[LM.i32, "T"], DW: LM.tma2d[LM.f32, "V", "D"].zeroed, T: LM.i32, D: LM.i32, V: LM.i32, PAD: LM.i32, *,
                         COLS=256, ROWS=8, STAGES=4):
    """Backward of an embedding: each row of DY is added to the row of DW of its token, from shared memory by the copy engine; no thread touches an element."""
    lm.launch(grid="persistent", ctas_per_sm=2)
    lm.assume(D % 4 == 0)
    lm.assume_values(IDX, 0, V)
    pool = lm.smem(STAGES * ROWS * COLS * 4)
    buf = pool.view(offset=0, shape=(ROWS, COLS), dtype=lm.f32, stage=STAGES)
    load = lm.role(warps=range(0, 1))
    add = lm.role(warps=range(1, 2))
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[add], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[add], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(D, COLS), lm.cdiv(T, ROWS)), names=("d", "r"))

    with load:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(empty, stage=s)
            buf.tma_load(DY, coords=(t.d * COLS, t.r * ROWS), stage=s, barrier=full)

    with add:
        for t in lm.tiles(sched):
            s = lm.step(ring)
            lm.wait(full, stage=s)
            for i in lm.static_range(ROWS):
                row = t.r * ROWS + i
                if row < T:
                    token = lm.ld(IDX, row)
                    if token != PAD:
                        buf[s].rows(i, 1).tma_reduce(DW, coords=(t.d * COLS, token), op="add", order="any")
            lm.store_wait(pending=0)
            lm.arrive(empty, stage=s)
