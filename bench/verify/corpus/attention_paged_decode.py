"""Paged decode for grouped queries: 16 query heads of one token, a page of keys and values a slot, one warp a quarter of the page."""


@cake.schedule(target="sm_90a")
def attention_paged_decode(lm, Q: LM.gmem3d[LM.bf16, "NB", "HQ", "D"], KP: LM.tma3d[LM.bf16, "PAGES", "PS", "D"],
                           VP: LM.tma3d[LM.bf16, "PAGES", "PS", "D"], TABLE: LM.gmem1d[LM.i32].const, LEN: LM.gmem1d[LM.i32, "NB"].const,
                           O: LM.gmem3d[LM.f32, "NB", "HQ", "D"], NB: LM.i32, HQ: LM.i32, PAGES: LM.i32, MAXP: LM.i32, scale_log2: LM.f32,
                           *, D=64, PS=64, STAGES=4):
    """O[b] = softmax(scale Q[b] K^T) V over the LEN[b] keys that TABLE[b * MAXP ..] lists page by page."""
    lm.launch(grid="tiles")
    lm.assume(HQ == 16)
    lm.assume_values(TABLE, 0, PAGES)
    kv_bytes = STAGES * PS * D * 2
    pool = lm.smem(2 * kv_bytes + 4 * 16 * D * 4 + 2 * 4 * 16 * 4)
    sk = pool.view(offset=0, shape=(PS, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    sv = pool.view(offset=kv_bytes, shape=(PS, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    so = pool.view(offset=2 * kv_bytes, shape=(64, D), dtype=lm.f32)
    sm = pool.view(offset=2 * kv_bytes + 4 * 16 * D * 4, shape=(64,), dtype=lm.f32)
    sl = pool.view(offset=2 * kv_bytes + 4 * 16 * D * 4 + 256, shape=(64,), dtype=lm.f32)
    work = lm.role(warps=range(0, 4), members=4)
    load = lm.role(warps=range(4, 5))
    kv = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=kv, prod=[load], cons=[work], arrive="tx")
    empty = lm.barrier(pipeline=kv, prod=[work], cons=[load], arrive="warp", primed=True)
    all4 = lm.named_barrier(work)
    sched = lm.scheduler(kind="grid", tiles=(NB,), names=("b",))

    with load:
        for t in lm.tiles(sched):
            for j in lm.range(lm.cdiv(lm.ld(LEN, t.b), PS)):
                page = lm.ld(TABLE, t.b * MAXP + j)
                s = lm.step(kv)
                lm.wait(empty, stage=s)
                sk.tma_load(KP, coords=(0, 0, page), stage=s, barrier=full)
                sv.tma_load(VP, coords=(0, 0, page), stage=s, barrier=full)

    with work:
        for t in lm.tiles(sched):
            n = lm.ld(LEN, t.b)
            o = lm.frag(shape=(16, D), dtype=lm.f32, form="acc", init=0.0)
            sc = lm.frag(shape=(16, 16), dtype=lm.f32, form="acc")
            q = lm.load(Q, coords=(0, 0, t.b), shape=(16, D), form="a", like=sc)
            m = lm.rowvec(sc, init=-1e30)
            l = lm.rowvec(sc, init=0.0)
            first = 16 * work.index
            for j in lm.range(lm.cdiv(n, PS)):
                s = lm.step(kv)
                lm.wait(full, stage=s)
                k = sk[s].rows(first, 16).ldmatrix(form="b", like=sc)
                v = sv[s].rows(first, 16).T.ldmatrix(form="b", like=o)
                lm.arrive(empty, stage=s)
                lm.mma(sc, q, k, init=True)
                x = lm.where(lm.iota(sc, axis=1, base=j * PS + first) < n, sc, -lm.inf)
                m_new = lm.max(m, lm.reduce(x, "max", axis=1))
                p = lm.exp2(x * scale_log2 - m_new * scale_log2)
                fix = lm.exp2((m - m_new) * scale_log2)
                l = l * fix + lm.reduce(p, "add", axis=1, partial=True)
                o = o * fix
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), v)
                m = m_new
            so.rows(first, 16).store(o)
            sm.cols(first, 16).store(m)
            sl.cols(first, 16).store(lm.finish(l))
            lm.sync(all4)
            if work.index == 0:
                top = m
                for w in lm.static_range(1, 4):
                    top = lm.max(top, sm.cols(16 * w, 16).load(form="rowvec", like=sc))
                total = lm.rowvec(sc, init=0.0)
                out = lm.frag(shape=(16, D), dtype=lm.f32, form="acc", init=0.0)
                for w in lm.static_range(4):
                    mw = sm.cols(16 * w, 16).load(form="rowvec", like=sc)
                    share = lm.exp2((mw - top) * scale_log2)
                    total = total + sl.cols(16 * w, 16).load(form="rowvec", like=sc) * share
                    out = out + so.rows(16 * w, 16).load(form="acc", like=o) * share
                lm.store(O, out * lm.rcp(total), coords=(0, 0, t.b))
