"""Chunked retention, first pass: the state K^T V before every chunk of 64 tokens, carried in registers and decayed from chunk to chunk."""
@cake.schedule(target="sm_90a")
def retention_states(lm, K: LM.tma3d[LM.bf16, "BH", "S", 64], V: LM.tma3d[LM.bf16, "BH", "S", 128], DECAY: LM.gmem2d[LM.f32, "BH", 64], GAMMA: LM.gmem1d[LM.f32, "BH"], STATES: LM.tma4d[LM.bf16, "BH", "NC", 64, 128], LAST: LM.gmem3d[LM.f32, "BH", 64, 128],
                     BH: LM.i32, S: LM.i32, NC: LM.i32, *, STAGES=3):
    lm.launch(grid="persistent")
    lm.assume(NC == lm.cdiv(S, 64) and S > 0)
    pool = lm.smem(STAGES * (64 * 128 + 64 * 256) + 8192 + 2 * 64 * 256)
    ks = pool.view(offset=0, shape=(64, 64), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    vs = pool.view(offset=STAGES * 8192, shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    weighted = pool.view(offset=STAGES * (8192 + 16384), shape=(64, 64), dtype=lm.bf16, swizzle="128b")
    leave = pool.view(offset=STAGES * (8192 + 16384) + 8192, shape=(64, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    compute = lm.role(warps=range(0, 4), regs=232)
    copy = lm.role(warps=range(4, 8), regs=24)
    q = lm.pipeline(stages=STAGES)
    ready = lm.barrier(pipeline=q, prod=[copy], cons=[compute], arrive="tx")
    empty = lm.barrier(pipeline=q, prod=[compute], cons=[copy], arrive="warp", primed=True)
    outs = lm.pipeline(stages=2)
    own = lm.named_barrier(compute)
    sched = lm.scheduler(kind="static", tiles=(BH,), names=("bh",))
    with copy:
        for t in lm.tiles(sched):
            for c in lm.range(NC):
                s = lm.step(q)
                lm.wait(empty, stage=s)
                ks.tma_load(K, coords=(0, 64 * c, t.bh), stage=s, barrier=ready)
                vs.tma_load(V, coords=(0, 64 * c, t.bh), stage=s, barrier=ready)
    with compute:
        for t in lm.tiles(sched):
            state = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0)
            gamma = lm.ld(GAMMA, t.bh)
            for c in lm.range(NC):
                s = lm.step(q)
                lm.wait(ready, stage=s)
                o = lm.step(outs)
                lm.store_wait(pending=1)
                lm.sync(own)
                leave[o].store(lm.cast(state, lm.bf16))
                k = ks[s].load(form="acc")
                d = lm.load(DECAY, coords=(0, t.bh), shape=(64,), form="rowvec", like=k)
                weighted.store(lm.cast(lm.cast(k, lm.f32) * d, lm.bf16))
                lm.fence_proxy()
                lm.sync(own)
                leave[o].tma_store(STATES, coords=(0, 0, c, t.bh))
                state = state * gamma
                lm.mma(state, weighted.T, vs[s].T)
                lm.mma_wait(pending=0)
                lm.sync(own)
                lm.arrive(empty, stage=s)
            lm.store(LAST, state, coords=(0, 0, t.bh))
        lm.store_wait(pending=0, read=False)
