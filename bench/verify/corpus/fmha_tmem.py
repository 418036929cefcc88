"""Attention forward on datacentre Blackwell: two query tiles take turns on the tensor core, probabilities go back through tensor memory."""


@cake.schedule(target=("sm_100a", "sm_103a"))
def fmha_tmem(lm, Q: LM.tma3d[LM.bf16, "BH", "S", "D"], K: LM.tma3d[LM.bf16, "BH", "S", "D"], V: LM.tma3d[LM.bf16, "BH", "S", "D"],
              O: LM.gmem3d[LM.bf16, "BH", "S", "D"], BH: LM.i32, S: LM.i32, scale_log2: LM.f32, *, D=64, BN=64, STAGES=2):
    """O = softmax(scale Q K^T) V; member i of `soft` owns rows 128 i on of a tile of 256."""
    lm.launch(grid="persistent")
    lm.assume(S > 0)
    q_bytes, kv_bytes = 256 * D * 2, STAGES * BN * D * 2
    pool = lm.smem(q_bytes + 2 * kv_bytes)
    sq = pool.view(offset=0, shape=(256, D), dtype=lm.bf16, swizzle="128b")
    sk = pool.view(offset=q_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sv = pool.view(offset=q_bytes + kv_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    s0 = lm.tmem(cols=0, width=BN, shape=(128, BN), dtype=lm.f32)
    s1 = lm.tmem(cols=BN, width=BN, shape=(128, BN), dtype=lm.f32)
    p0 = lm.tmem(cols=2 * BN, width=BN // 2, shape=(128, BN), dtype=lm.bf16)
    p1 = lm.tmem(cols=2 * BN + BN // 2, width=BN // 2, shape=(128, BN), dtype=lm.bf16)
    o0 = lm.tmem(cols=3 * BN, width=D, shape=(128, D), dtype=lm.f32)
    o1 = lm.tmem(cols=3 * BN + D, width=D, shape=(128, D), dtype=lm.f32)
    soft0 = lm.role(warps=range(0, 4))
    soft1 = lm.role(warps=range(4, 8))
    mma = lm.role(warps=range(8, 9))
    load = lm.role(warps=range(9, 10))
    qr = lm.pipeline(stages=1)
    q_full = lm.barrier(pipeline=qr, prod=[load], cons=[mma], arrive="tx")
    q_empty = lm.barrier(pipeline=qr, prod=[mma], cons=[load], arrive="mma", primed=True)
    kr = lm.pipeline(stages=STAGES)
    k_full = lm.barrier(pipeline=kr, prod=[load], cons=[mma], arrive="tx")
    k_empty = lm.barrier(pipeline=kr, prod=[mma], cons=[load], arrive="mma", primed=True)
    vr = lm.pipeline(stages=STAGES)
    v_full = lm.barrier(pipeline=vr, prod=[load], cons=[mma], arrive="tx")
    v_empty = lm.barrier(pipeline=vr, prod=[mma], cons=[load], arrive="mma", primed=True)
    r0 = lm.pipeline(stages=1)
    s0_full = lm.barrier(pipeline=r0, prod=[mma], cons=[soft0], arrive="mma")
    p0_full = lm.barrier(pipeline=r0, prod=[soft0], cons=[mma], arrive="warp")
    o0_full = lm.barrier(pipeline=r0, prod=[mma], cons=[soft0], arrive="mma")
    r1 = lm.pipeline(stages=1)
    s1_full = lm.barrier(pipeline=r1, prod=[mma], cons=[soft1], arrive="mma")
    p1_full = lm.barrier(pipeline=r1, prod=[soft1], cons=[mma], arrive="warp")
    o1_full = lm.barrier(pipeline=r1, prod=[mma], cons=[soft1], arrive="mma")
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(S, 256), BH), names=("m", "bh"))
    nt = lm.cdiv(S, BN)

    with load:
        for t in lm.tiles(sched):
            q = lm.step(qr)
            lm.wait(q_empty, stage=q)
            sq.tma_load(Q, coords=(0, t.m * 256, t.bh), stage=q, barrier=q_full)
            for j in lm.range(nt):
                k = lm.step(kr)
                lm.wait(k_empty, stage=k)
                sk.tma_load(K, coords=(0, j * BN, t.bh), stage=k, barrier=k_full)
                v = lm.step(vr)
                lm.wait(v_empty, stage=v)
                sv.tma_load(V, coords=(0, j * BN, t.bh), stage=v, barrier=v_full)

    with mma:
        for t in lm.tiles(sched):
            q = lm.step(qr)
            lm.wait(q_full, stage=q)
            for j in lm.range(nt):
                k = lm.step(kr)
                lm.wait(k_full, stage=k)
                a = lm.step(r0)
                lm.mma(s0, sq.rows(0, 128), sk[k], init=True)
                lm.commit(s0_full, stage=a)
                b = lm.step(r1)
                lm.mma(s1, sq.rows(128, 128), sk[k], init=True)
                lm.commit(s1_full, stage=b)
                lm.commit(k_empty, stage=k)
                v = lm.step(vr)
                lm.wait(v_full, stage=v)
                lm.wait(p0_full, stage=a)
                lm.mma(o0, p0, sv[v].T, init=True)
                lm.commit(o0_full, stage=a)
                lm.wait(p1_full, stage=b)
                lm.mma(o1, p1, sv[v].T, init=True)
                lm.commit(o1_full, stage=b)
                lm.commit(v_empty, stage=v)
            lm.commit(q_empty, stage=q)

    with soft0:
        for t in lm.tiles(sched):
            o = lm.frag(shape=(128, D), dtype=lm.f32, form="rows", init=0.0)
            m = lm.rowvec(o, init=-1e30)
            l = lm.rowvec(o, init=0.0)
            for j in lm.range(nt):
                a = lm.step(r0)
                lm.wait(s0_full, stage=a)
                s = lm.tmem_load(s0)
                lm.tmem_wait("ld")
                x = lm.where(lm.iota(s, axis=1, base=j * BN) < S, s, -lm.inf)
                top = lm.max(m, lm.reduce(x, "max", axis=1))
                p = lm.exp2((x - top) * scale_log2)
                fix = lm.exp2((m - top) * scale_log2)
                l = l * fix + lm.reduce(p, "add", axis=1)
                m = top
                lm.tmem_store(p0, lm.cast(p, lm.bf16))
                lm.tmem_wait("st")
                lm.arrive(p0_full, stage=a)
                lm.wait(o0_full, stage=a)
                part = lm.tmem_load(o0)
                lm.tmem_wait("ld")
                o = o * fix + part
            lm.store(O, lm.cast(o * lm.rcp(l), lm.bf16), coords=(0, t.m * 256, t.bh), clip=True)

    with soft1:
        for t in lm.tiles(sched):
            o = lm.frag(shape=(128, D), dtype=lm.f32, form="rows", init=0.0)
            m = lm.rowvec(o, init=-1e30)
            l = lm.rowvec(o, init=0.0)
            for j in lm.range(nt):
                a = lm.step(r1)
                lm.wait(s1_full, stage=a)
                s = lm.tmem_load(s1)
                lm.tmem_wait("ld")
                x = lm.where(lm.iota(s, axis=1, base=j * BN) < S, s, -lm.inf)
                top = lm.max(m, lm.reduce(x, "max", axis=1))
                p = lm.exp2((x - top) * scale_log2)
                fix = lm.exp2((m - top) * scale_log2)
                l = l * fix + lm.reduce(p, "add", axis=1)
                m = top
                lm.tmem_store(p1, lm.cast(p, lm.bf16))
                lm.tmem_wait("st")
                lm.arrive(p1_full, stage=a)
                lm.wait(o1_full, stage=a)
                part = lm.tmem_load(o1)
                lm.tmem_wait("ld")
                o = o * fix + part
            lm.store(O, lm.cast(o * lm.rcp(l), lm.bf16), coords=(0, t.m * 256 + 128, t.bh), clip=True)
