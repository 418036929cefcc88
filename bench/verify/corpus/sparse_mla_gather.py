"""DeepSeek sparse attention (DSA) decode: 64 heads over TOPK chosen latents, gathered row by row with cp.async by a warpgroup of its own; -1 is no choice."""


@cake.schedule(target="sm_90a")
def sparse_mla_gather(lm, Q: LM.tma3d[LM.bf16, "T", 64, 576], KV: LM.gmem2d[LM.bf16, "SLOTS", 576], IDX: LM.gmem2d[LM.i32, "T", "TOPK"], O: LM.gmem3d[LM.bf16, "T", 64, 512],
                           T: LM.i32, SLOTS: LM.i32, scale: LM.f32, *, TOPK=2048, BN=64):
    """DeepSeek sparse attention (DSA) decode: 64 heads over TOPK chosen latents, gathered row by row with cp.async by a warpgroup of its own; -1 is no choice."""
    lm.launch(grid="persistent")
    tile = 64 * 576 * 2
    pool = lm.smem(3 * tile)
    q = pool.view(offset=0, shape=(64, 576), dtype=lm.bf16, swizzle="128b")
    kv = pool.view(offset=tile, shape=(BN, 576), dtype=lm.bf16, stage=2, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=208, members=2)
    load = lm.role(warps=range(8, 12), regs=80)
    qring = lm.pipeline(stages=1)
    qfull = lm.barrier(pipeline=qring, prod=[load], cons=[math], arrive="tx")
    qempty = lm.barrier(pipeline=qring, prod=[math], cons=[load], arrive="member", primed=True)
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="warp")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(T,), names=("t",))
    with load:
        for t in lm.tiles(sched):
            sq = lm.step(qring)
            lm.wait(qempty, stage=sq)
            q.tma_load(Q, coords=(0, 0, t.t), stage=sq, barrier=qfull)
            for i in lm.range(TOPK // BN):
                s = lm.step(ring)
                rows = lm.load(IDX, coords=(i * BN, t.t), shape=(BN,), form="rowvec")
                lm.wait(empty, stage=s)
                kv.cp_async_rows(KV, rows=rows, coords=(0, 0), stage=s)
                lm.cp_commit()
                lm.cp_wait(pending=0)
                lm.fence_proxy()
                lm.arrive(full, stage=s)
    with math:
        x = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            o = lm.frag(shape=(64, 256), dtype=lm.f32, form="acc", init=0.0)
            m = lm.rowvec(x, init=-1e30)
            den = lm.rowvec(x, init=0.0)
            sq = lm.step(qring)
            lm.wait(qfull, stage=sq)
            for i in lm.range(TOPK // BN):
                s = lm.step(ring)
                who = lm.load(IDX, coords=(i * BN, t.t), shape=(BN,), form="colvec", like=x)
                lm.wait(full, stage=s)
                lm.mma(x, q[sq], kv[s], init=True)
                lm.mma_wait(pending=0)
                y = lm.where(who >= 0, x * (scale * 1.44269504), -lm.inf)
                new = lm.max(m, lm.reduce(y, "max", axis=1))
                fix = lm.exp2(m - new)
                p = lm.exp2(y - new)
                den = den * fix + lm.sum(p, axis=1)
                m = new
                o = o * fix
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), kv[s].cols(256 * math.index, 256).T)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.arrive(qempty, stage=sq)
            lm.store(O, lm.cast(o * lm.rcp(den), lm.bf16), coords=(256 * math.index, 0, t.t))
