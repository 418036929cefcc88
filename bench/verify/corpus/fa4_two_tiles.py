"""Attention on tensor memory, two tiles of queries a CTA; K and V ride one ring, and their slots have one name."""


@cake.schedule(target=("sm_100a", "sm_103a"))
def fa4_two_tiles(lm, Q: LM.tma3d[LM.bf16, "BH", "S", "D"], K: LM.tma3d[LM.bf16, "BH", "S", "D"], V: LM.tma3d[LM.bf16, "BH", "S", "D"], O: LM.gmem3d[LM.bf16, "BH", "S", "D"],
                  BH: LM.i32, S: LM.i32, scale_log2: LM.f32, *, D=64, BN=64, STAGES=4):
    """Attention forward on tensor memory: two tiles of 128 queries a CTA, a softmax warpgroup for each, one warp multiplies for both in turn."""
    lm.launch(grid="persistent")
    lm.assume(S > 0)
    q_bytes, kv_bytes = 256 * D * 2, STAGES * BN * D * 2
    pool = lm.smem(q_bytes + kv_bytes)
    smem_q = pool.view(offset=0, shape=(256, D), dtype=lm.bf16, swizzle="128b")
    smem_kv = pool.view(offset=q_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    s0 = lm.tmem(cols=0, width=BN, shape=(128, BN), dtype=lm.f32)
    s1 = lm.tmem(cols=BN, width=BN, shape=(128, BN), dtype=lm.f32)
    p0 = lm.tmem(cols=0, width=BN // 2, shape=(128, BN), dtype=lm.bf16)
    p1 = lm.tmem(cols=BN, width=BN // 2, shape=(128, BN), dtype=lm.bf16)
    o0 = lm.tmem(cols=2 * BN, width=D, shape=(128, D), dtype=lm.f32)
    o1 = lm.tmem(cols=2 * BN + D, width=D, shape=(128, D), dtype=lm.f32)

    soft0 = lm.role(warps=range(0, 4))
    soft1 = lm.role(warps=range(4, 8))
    mul = lm.role(warps=range(8, 9))
    load = lm.role(warps=range(9, 10))
    qr = lm.pipeline(stages=1)
    q_full = lm.barrier(pipeline=qr, prod=[load], cons=[mul], arrive="tx")
    q_empty = lm.barrier(pipeline=qr, prod=[mul], cons=[load], arrive="mma", primed=True)
    kv = lm.pipeline(stages=STAGES)
    kv_full = lm.barrier(pipeline=kv, prod=[load], cons=[mul], arrive="tx")
    kv_empty = lm.barrier(pipeline=kv, prod=[mul], cons=[load], arrive="mma", primed=True)
    r0 = lm.pipeline(stages=1)
    r1 = lm.pipeline(stages=1)
    s0_full = lm.barrier(pipeline=r0, prod=[mul], cons=[soft0], arrive="mma")
    s1_full = lm.barrier(pipeline=r1, prod=[mul], cons=[soft1], arrive="mma")
    p0_full = lm.barrier(pipeline=r0, prod=[soft0], cons=[mul], arrive="warp")
    p1_full = lm.barrier(pipeline=r1, prod=[soft1], cons=[mul], arrive="warp")
    o0_full = lm.barrier(pipeline=r0, prod=[mul], cons=[soft0], arrive="mma")
    o1_full = lm.barrier(pipeline=r1, prod=[mul], cons=[soft1], arrive="mma")
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(S, 256), BH), names=("m", "h"))
    n = lm.cdiv(S, BN)

    with load:
        for t in lm.tiles(sched):
            q = lm.step(qr)
            lm.wait(q_empty, stage=q)
            smem_q.tma_load(Q, coords=(0, t.m * 256, t.h), stage=q, barrier=q_full)
            for j in lm.range(n):
                s = lm.step(kv)
                lm.wait(kv_empty, stage=s)
                smem_kv.tma_load(K, coords=(0, j * BN, t.h), stage=s, barrier=kv_full)
                s = lm.step(kv)
                lm.wait(kv_empty, stage=s)
                smem_kv.tma_load(V, coords=(0, j * BN, t.h), stage=s, barrier=kv_full)
    with mul:
        for t in lm.tiles(sched):
            q = lm.step(qr)
            lm.wait(q_full, stage=q)
            for j in lm.range(n):
                k = lm.step(kv)
                a = lm.step(r0)
                b = lm.step(r1)
                lm.wait(kv_full, stage=k)
                lm.mma(s0, smem_q[q].rows(0, 128), smem_kv[k], init=True)
                lm.commit(s0_full, stage=a)
                lm.mma(s1, smem_q[q].rows(128, 128), smem_kv[k], init=True)
                lm.commit(s1_full, stage=b)
                lm.commit(kv_empty, stage=k)
                v = lm.step(kv)
                lm.wait(kv_full, stage=v)
                lm.wait(p0_full, stage=a)
                lm.mma(o0, p0, smem_kv[v].T, init=(j == 0))
                lm.commit(o0_full, stage=a)
                lm.wait(p1_full, stage=b)
                lm.mma(o1, p1, smem_kv[v].T, init=(j == 0))
                lm.commit(o1_full, stage=b)
                lm.commit(kv_empty, stage=v)
            lm.commit(q_empty, stage=q)
    with soft0:
        for t in lm.tiles(sched):
            like = lm.frag(shape=(128, BN), dtype=lm.f32, form="rows")
            top = lm.rowvec(like=like, init=-lm.inf)
            total = lm.rowvec(like=like, init=0.0)
            for j in lm.range(n):
                a = lm.step(r0)
                lm.wait(s0_full, stage=a)
                x = lm.tmem_load(s0)
                lm.tmem_wait("ld")
                z = lm.where(lm.iota(x, 1, base=j * BN) < S, x * scale_log2, -lm.inf)
                peak = lm.max(top, lm.reduce(z, "max", axis=1))
                fix = lm.exp2(top - peak)
                p = lm.exp2(z - peak)
                total = total * fix + lm.reduce(p, "add", axis=1)
                top = peak
                if j > 0:
                    lm.wait(o0_full, stage=a.prev())
                    for c in lm.static_range(D // 32):
                        o = lm.tmem_load(o0.cols(32 * c, 32))
                        lm.tmem_wait("ld")
                        lm.tmem_store(o0.cols(32 * c, 32), o * fix)
                lm.tmem_store(p0, lm.cast(p, lm.bf16))
                lm.tmem_wait("st")
                lm.arrive(p0_full, stage=a)
            lm.wait(o0_full, stage=lm.at(r0))
            inv = lm.rcp(total)
            for c in lm.static_range(D // 32):
                o = lm.tmem_load(o0.cols(32 * c, 32))
                lm.tmem_wait("ld")
                lm.store(O, lm.cast(o * inv, lm.bf16), coords=(32 * c, t.m * 256, t.h), clip=True)
    with soft1:
        for t in lm.tiles(sched):
            like = lm.frag(shape=(128, BN), dtype=lm.f32, form="rows")
            top = lm.rowvec(like=like, init=-lm.inf)
            total = lm.rowvec(like=like, init=0.0)
            for j in lm.range(n):
                b = lm.step(r1)
                lm.wait(s1_full, stage=b)
                x = lm.tmem_load(s1)
                lm.tmem_wait("ld")
                z = lm.where(lm.iota(x, 1, base=j * BN) < S, x * scale_log2, -lm.inf)
                peak = lm.max(top, lm.reduce(z, "max", axis=1))
                fix = lm.exp2(top - peak)
                p = lm.exp2(z - peak)
                total = total * fix + lm.reduce(p, "add", axis=1)
                top = peak
                if j > 0:
                    lm.wait(o1_full, stage=b.prev())
                    for c in lm.static_range(D // 32):
                        o = lm.tmem_load(o1.cols(32 * c, 32))
                        lm.tmem_wait("ld")
                        lm.tmem_store(o1.cols(32 * c, 32), o * fix)
                lm.tmem_store(p1, lm.cast(p, lm.bf16))
                lm.tmem_wait("st")
                lm.arrive(p1_full, stage=b)
            lm.wait(o1_full, stage=lm.at(r1))
            inv = lm.rcp(total)
            for c in lm.static_range(D // 32):
                o = lm.tmem_load(o1.cols(32 * c, 32))
                lm.tmem_wait("ld")
                lm.store(O, lm.cast(o * inv, lm.bf16), coords=(32 * c, t.m * 256 + 128, t.h), clip=True)
