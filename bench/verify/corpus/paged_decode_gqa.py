@cake.schedule(target="sm_90a")
def paged_decode_gqa(lm, Q: LM.gmem3d[LM.bf16, "B", "HQ", 128], Kc: LM.tma4d[LM.bf16, "PAGES", "HKV", 64, 128], Vc: LM.tma4d[LM.bf16, "PAGES", "HKV", 64, 128],
                     table: LM.gmem1d[LM.i32, "BP"], lens: LM.gmem1d[LM.i32, "B"], Op: LM.gmem3d[LM.f32, "ROWS", "SPLITS", 128], Lse: LM.gmem2d[LM.f32, "ROWS", "SPLITS"],
                     B: LM.i32, HQ: LM.i32, HKV: LM.i32, PAGES: LM.i32, MAXP: LM.i32, BP: LM.i32, ROWS: LM.i32, scale_log2: LM.f32, *, G=8, SPLITS=4, STAGES=2):
    """One split of a decode step over a paged cache: the G query heads of a KV head share its pages; partial results and log2-sums for the combine launch."""
    lm.launch(grid="tiles")
    lm.assume(HQ == HKV * G and ROWS == B * HQ and BP == B * MAXP)
    lm.assume_values(table, 0, PAGES)
    lm.assume_values(lens, 0, MAXP * 64 + 1)
    kv_bytes = STAGES * 64 * 128 * 2
    pool = lm.smem(2 * kv_bytes)
    smem_k = pool.view(offset=0, shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_v = pool.view(offset=kv_bytes, shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4))
    load = lm.role(warps=range(4, 5))
    kv = lm.pipeline(stages=STAGES)
    k_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    v_full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="grid", tiles=(SPLITS, HKV, B), names=("s", "h", "b"))

    with load:
        for t in lm.tiles(sched):
            n = lm.ld(lens, t.b)
            pages = lm.cdiv(n, 64)
            each = lm.cdiv(pages, SPLITS)
            lo = lm.min(t.s * each, pages)
            hi = lm.min(lo + each, pages)
            for p in lm.range(lo, hi):
                page = lm.ld(table, t.b * MAXP + p)
                s = lm.step(kv)
                lm.wait(empty, stage=s)
                smem_k.tma_load(Kc, coords=(0, 0, t.h, page), stage=s, barrier=k_full)
                smem_v.tma_load(Vc, coords=(0, 0, t.h, page), stage=s, barrier=v_full)

    with math:
        scores = lm.frag(shape=(64, 64), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            n = lm.ld(lens, t.b)
            pages = lm.cdiv(n, 64)
            each = lm.cdiv(pages, SPLITS)
            lo = lm.min(t.s * each, pages)
            hi = lm.min(lo + each, pages)
            qz = lm.frag(shape=(64, 128), dtype=lm.bf16, form="a")
            q = lm.load(Q, coords=(0, t.h * G, t.b), shape=(64, 128), form="a", mask=lm.in_bounds(qz, G, 128))
            o = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0)
            m = lm.rowvec(like=scores, init=-lm.inf)
            l = lm.rowvec(like=scores, init=0.0)
            for p in lm.range(lo, hi):
                s = lm.step(kv)
                lm.wait(k_full, stage=s)
                lm.mma(scores, q, smem_k[s], init=True)
                lm.mma_wait(pending=0)
                z = lm.where(p * 64 + lm.iota(scores, 1) < n, scores * scale_log2, -lm.inf)
                m_new = lm.max(m, lm.reduce(z, "max", axis=1))
                fix = lm.exp2(m - m_new)
                w = lm.exp2(z - m_new)
                l = l * fix + lm.reduce(w, "add", axis=1)
                o = o * fix
                m = m_new
                lm.wait(v_full, stage=s)
                lm.mma(o, lm.cast(w, lm.bf16, form="a"), smem_v[s].T)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            inv = lm.where(l > 0.0, lm.rcp(l), 0.0)
            row = t.b * HQ + t.h * G
            lm.store(Op, o * inv, coords=(0, t.s, row + lm.iota(o, 0)), mask=lm.in_bounds(o, G, 128))
            lm.store(Lse, lm.where(l > 0.0, m + lm.log2(l), -lm.inf), coords=(t.s, row + lm.iota(scores, 0)), mask=lm.iota(scores, 0) < G)
