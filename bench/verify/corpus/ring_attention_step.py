@cake.schedule(target="sm_90a")
def ring_attention_step(lm, Q: LM.tma3d[LM.bf16, "H", "S", 128], K: LM.tma3d[LM.bf16, "H", "L", 128], V: LM.tma3d[LM.bf16, "H", "L", 128],
                        OA: LM.gmem3d[LM.f32, "H", "S", 128].inout, LSE: LM.gmem2d[LM.f32, "H", "S"].inout, H: LM.i32, S: LM.i32, L: LM.i32, scale: LM.f32, *, BK=64, STAGES=3):
    """One step around the ring: the shard of keys that came from the neighbour joins the output and the log-sum so far, in place."""
    lm.launch(grid="persistent")
    lm.assume(L > 0)
    kv_bytes = STAGES * BK * 128 * 2
    pool = lm.smem(128 * 128 * 2 + 2 * kv_bytes)
    smem_q = pool.view(offset=0, shape=(128, 128), dtype=lm.bf16, swizzle="128b")
    smem_k = pool.view(offset=128 * 128 * 2, shape=(BK, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_v = pool.view(offset=128 * 128 * 2 + kv_bytes, shape=(BK, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")

    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    qring = lm.pipeline(stages=1)
    kv = lm.pipeline(stages=STAGES)
    qfull = lm.barrier(pipeline=qring, prod=[load], cons=[math], arrive="tx")
    qempty = lm.barrier(pipeline=qring, prod=[math], cons=[load], arrive="member", primed=True)
    kfull = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    kempty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="member", primed=True)
    vfull = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    vempty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(S, 128), H), names=("m", "h"))
    kt = lm.cdiv(L, BK)

    with load:
        for t in lm.tiles(sched):
            q = lm.step(qring)
            lm.wait(qempty, stage=q)
            smem_q.tma_load(Q, coords=(0, t.m * 128, t.h), stage=q, barrier=qfull)
            for j in lm.range(kt):
                s = lm.step(kv)
                lm.wait(kempty, stage=s)
                smem_k.tma_load(K, coords=(0, j * BK, t.h), stage=s, barrier=kfull)
                lm.wait(vempty, stage=s)
                smem_v.tma_load(V, coords=(0, j * BK, t.h), stage=s, barrier=vfull)

    with math:
        acc = lm.frag(shape=(64, BK), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            row = t.m * 128 + 64 * math.index
            o = lm.load(OA, coords=(0, row, t.h), shape=(64, 128), form="acc", clip=True)
            top = lm.load(LSE, coords=(row, t.h), shape=(64,), form="rowvec", like=o, clip=True)
            total = lm.rowvec(like=o, init=0.0) + 1.0
            q = lm.step(qring)
            lm.wait(qfull, stage=q)
            for j in lm.range(kt):
                s = lm.step(kv)
                lm.wait(kfull, stage=s)
                lm.mma(acc, smem_q[q].rows(64 * math.index, 64), smem_k[s], init=True)
                lm.mma_wait(pending=0)
                lm.arrive(kempty, stage=s)
                x = lm.where(j * BK + lm.iota(acc, 1) < L, acc * scale, -lm.inf)
                new = lm.max(top, lm.reduce(x, "max", axis=1))
                fix = lm.exp(top - new)
                p = lm.exp(x - new)
                total = total * fix + lm.reduce(p, "add", axis=1)
                top = new
                o = o * fix
                lm.wait(vfull, stage=s)
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), smem_v[s].T)
                lm.mma_wait(pending=0)
                lm.arrive(vempty, stage=s)
            lm.arrive(qempty, stage=q)
            lm.store(OA, o * lm.rcp(total), coords=(0, row, t.h), clip=True)
            lm.store(LSE, top + lm.log(total), coords=(row, t.h), clip=True)
