"""Causal attention forward: K and V tiles alternate on one ring, the next scores are computed while P V of the last ones runs."""


@cake.schedule(target="sm_90a")
def attention_causal(lm, Q: LM.tma4d[LM.bf16, "B", "H", "S", "D"], K: LM.tma4d[LM.bf16, "B", "H", "S", "D"],
                     V: LM.tma4d[LM.bf16, "B", "H", "S", "D"], O: LM.gmem4d[LM.bf16, "B", "H", "S", "D"],
                     B: LM.i32, H: LM.i32, S: LM.i32, scale_log2: LM.f32, *, D=128, BN=128, STAGES=4, CAUSAL=True):
    """O = softmax(scale Q K^T) V; 64 query rows a math member, key blocks from right to left."""
    lm.launch(grid="persistent")
    lm.assume(S > 0)
    q_bytes = 128 * D * 2
    pool = lm.smem(q_bytes + STAGES * BN * D * 2)
    sq = pool.view(offset=0, shape=(128, D), dtype=lm.bf16, swizzle="128b")
    skv = pool.view(offset=q_bytes, shape=(BN, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    qr = lm.pipeline(stages=1)
    q_full = lm.barrier(pipeline=qr, prod=[load], cons=[math], arrive="tx")
    q_empty = lm.barrier(pipeline=qr, prod=[math], cons=[load], arrive="member", primed=True)
    kv = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(S, 128), H, B), names=("m", "h", "b"), raster="heavy_first")
    blocks = lm.cdiv(S, BN)

    with load:
        for t in lm.tiles(sched):
            n = lm.min(lm.cdiv((t.m + 1) * 128, BN), blocks) if CAUSAL else blocks
            q = lm.step(qr)
            lm.wait(q_empty, stage=q)
            sq.tma_load(Q, coords=(0, t.m * 128, t.h, t.b), stage=q, barrier=q_full)
            s = lm.step(kv)
            lm.wait(empty, stage=s)
            skv.tma_load(K, coords=(0, (n - 1) * BN, t.h, t.b), stage=s, barrier=full)
            for j in lm.range(1, n):
                s = lm.step(kv)
                lm.wait(empty, stage=s)
                skv.tma_load(K, coords=(0, (n - 1 - j) * BN, t.h, t.b), stage=s, barrier=full)
                v = lm.step(kv)
                lm.wait(empty, stage=v)
                skv.tma_load(V, coords=(0, (n - j) * BN, t.h, t.b), stage=v, barrier=full)
            v = lm.step(kv)
            lm.wait(empty, stage=v)
            skv.tma_load(V, coords=(0, 0, t.h, t.b), stage=v, barrier=full)

    with math:
        sc = lm.frag(shape=(64, BN), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            n = lm.min(lm.cdiv((t.m + 1) * 128, BN), blocks) if CAUSAL else blocks
            row0 = t.m * 128 + 64 * math.index
            o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", init=0.0)
            q = lm.step(qr)
            lm.wait(q_full, stage=q)
            mine = sq.rows(64 * math.index, 64)

            s = lm.step(kv)
            lm.wait(full, stage=s)
            lm.mma(sc, mine, skv[s], init=True)
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=s)
            col = lm.iota(sc, axis=1, base=(n - 1) * BN)
            seen = col < S
            if CAUSAL:
                seen = seen & (col <= lm.iota(sc, axis=0, base=row0))
            x = lm.where(seen, sc, -lm.inf)
            m = lm.reduce(x, "max", axis=1)
            m = lm.max(m, -1e30)                               # a row with no key yet: keep exp2 away from inf - inf
            p = lm.exp2(x * scale_log2 - m * scale_log2)
            l = lm.reduce(p, "add", axis=1, partial=True)
            pa = lm.cast(p, lm.bf16, form="a")

            for j in lm.range(1, n):
                s = lm.step(kv)
                lm.wait(full, stage=s)
                lm.mma(sc, mine, skv[s], init=True)
                v = lm.step(kv)
                lm.wait(full, stage=v)
                lm.mma(o, pa, skv[v].T)
                lm.mma_wait(pending=1)                         # the scores are there, P V still runs
                lm.arrive(empty, stage=s)
                if CAUSAL:
                    x = lm.where(lm.iota(sc, axis=1, base=(n - 1 - j) * BN) <= lm.iota(sc, axis=0, base=row0), sc, -lm.inf)
                else:
                    x = sc * 1.0
                m_new = lm.max(m, lm.reduce(x, "max", axis=1))
                p = lm.exp2(x * scale_log2 - m_new * scale_log2)
                fix = lm.exp2((m - m_new) * scale_log2)
                l = l * fix + lm.reduce(p, "add", axis=1, partial=True)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=v)
                o = o * fix
                pa = lm.cast(p, lm.bf16, form="a")
                m = m_new

            v = lm.step(kv)
            lm.wait(full, stage=v)
            lm.mma(o, pa, skv[v].T)
            lm.mma_wait(pending=0)
            lm.arrive(empty, stage=v)
            lm.arrive(q_empty, stage=q)
            l = lm.finish(l)
            lm.store(O, lm.cast(o * lm.rcp(l), lm.bf16), coords=(0, row0, t.h, t.b), clip=True)
