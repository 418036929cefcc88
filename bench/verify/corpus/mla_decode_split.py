"""MLA decode: 64 heads share one latent of 576; V is its first 512 columns. Each split of a request leaves a partial result and its log-sum-exp."""


@cake.schedule(target="sm_90a")
def mla_decode_split(lm, Q: LM.tma3d[LM.bf16, "B", 64, 576], KV: LM.tma3d[LM.bf16, "PAGES", 64, 576], TABLE: LM.gmem1d[LM.i32, "ENTRIES"], LEN: LM.gmem1d[LM.i32, "B"],
                     OP: LM.gmem3d[LM.f32, "BS", 64, 512], LSE: LM.gmem2d[LM.f32, "BS", 64],
                     B: LM.i32, PAGES: LM.i32, MAXPAGES: LM.i32, ENTRIES: LM.i32, BS: LM.i32, scale: LM.f32, *, SPLITS=4):
    """MLA decode: 64 heads share one latent of 576; V is its first 512 columns. Each split of a request leaves a partial result and its log-sum-exp."""
    lm.launch(grid="persistent")
    lm.assume(BS == B * SPLITS and ENTRIES == B * MAXPAGES)
    lm.assume_values(LEN, 0, MAXPAGES * 64 + 1)
    lm.assume_values(TABLE, 0, PAGES)
    tile = 64 * 576 * 2
    pool = lm.smem(3 * tile)
    q = pool.view(offset=0, shape=(64, 576), dtype=lm.bf16, swizzle="128b")
    kv = pool.view(offset=tile, shape=(64, 576), dtype=lm.bf16, stage=2, swizzle="128b")

    math = lm.role(warps=range(0, 8), regs=232, members=2)
    load = lm.role(warps=range(8, 12), regs=40)
    qring = lm.pipeline(stages=1)
    qfull = lm.barrier(pipeline=qring, prod=[load], cons=[math], arrive="tx")
    qempty = lm.barrier(pipeline=qring, prod=[math], cons=[load], arrive="member", primed=True)
    ring = lm.pipeline(stages=2)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(SPLITS, B), names=("s", "b"))

    with load:
        for t in lm.tiles(sched):
            pages = lm.cdiv(lm.ld(LEN, t.b), 64)
            per = lm.cdiv(pages, SPLITS)
            lo = lm.min(t.s * per, pages)
            n = lm.min(per, pages - lo)
            sq = lm.step(qring)
            lm.wait(qempty, stage=sq)
            q.tma_load(Q, coords=(0, 0, t.b), stage=sq, barrier=qfull)
            for i in lm.range(n):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                page = lm.ld(TABLE, t.b * MAXPAGES + lo + i)
                kv.tma_load(KV, coords=(0, 0, page), stage=s, barrier=full)

    with math:
        sc = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        o = lm.frag(shape=(64, 256), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            length = lm.ld(LEN, t.b)
            pages = lm.cdiv(length, 64)
            per = lm.cdiv(pages, SPLITS)
            lo = lm.min(t.s * per, pages)
            n = lm.min(per, pages - lo)
            m = lm.rowvec(sc, init=-lm.inf)
            den = lm.rowvec(sc, init=0.0)
            o = lm.frag(shape=(64, 256), dtype=lm.f32, form="acc", init=0.0)
            sq = lm.step(qring)
            lm.wait(qfull, stage=sq)
            for i in lm.range(n):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(sc, q[sq], kv[s], init=True)
                lm.mma_wait(pending=0)
                col = lm.iota(sc, 1, base=(lo + i) * 64)
                x = lm.where(col < length, sc * (scale * 1.4426950408889634), -lm.inf)
                new = lm.max(m, lm.reduce(x, "max", axis=1))
                fix = lm.exp2(m - new)
                p = lm.exp2(x - new)
                den = den * fix + lm.reduce(p, "add", axis=1)
                m = new
                o = o * fix
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), kv[s].cols(256 * math.index, 256).T)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.arrive(qempty, stage=sq)
            inv = lm.where(den > 0.0, lm.rcp(den), 0.0)
            lm.store(OP, o * inv, coords=(256 * math.index, 0, t.b * SPLITS + t.s))
            if math.index == 0:
                lm.store(LSE, lm.where(den > 0.0, m + lm.log2(den), -lm.inf), coords=(0, t.b * SPLITS + t.s))
