"""Prefill over a paged cache (FlashInfer layout NHD): ragged queries, keys by page number, causal from the end of each request."""


@cake.schedule(target="sm_90a")
def paged_prefill(lm, Q: LM.tma3d[LM.bf16, "T", "H", "D"], KC: LM.tma4d[LM.bf16, "PAGES", "PS", "HK", "D"], VC: LM.tma4d[LM.bf16, "PAGES", "PS", "HK", "D"],
                  O: LM.gmem3d[LM.bf16, "T", "H", "D"], CUQ: LM.gmem1d[LM.i32, "NS1"], KVLEN: LM.gmem1d[LM.i32, "NS"], INDPTR: LM.gmem1d[LM.i32, "NS1"], INDEX: LM.gmem1d[LM.i32, "NP"],
                  T: LM.i32, H: LM.i32, HK: LM.i32, PAGES: LM.i32, NS: LM.i32, NS1: LM.i32, NP: LM.i32, scale: LM.f32, *, D=128, PS=64, STAGES=2, GROUP=4):
    """Prefill over a paged cache (FlashInfer layout NHD): ragged queries, keys by page number, causal from the end of each request."""
    lm.launch(grid="persistent")
    lm.assume(NS1 == NS + 1 and H == HK * GROUP)
    lm.assume_values(CUQ, 0, T + 1, sorted=True)
    lm.assume_values(INDPTR, 0, NP + 1, sorted=True)
    lm.assume_values(INDEX, 0, PAGES)
    qb, kb = 64 * D * 2, PS * D * 2
    pool = lm.smem(qb + 2 * STAGES * kb)
    q = pool.view(offset=0, shape=(64, D), dtype=lm.bf16, swizzle="128b")
    k = pool.view(offset=qb, shape=(PS, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    v = pool.view(offset=qb + STAGES * kb, shape=(PS, D), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 4), regs=232)
    load = lm.role(warps=range(4, 8), regs=40)
    qring = lm.pipeline(stages=1)
    qfull = lm.barrier(pipeline=qring, prod=[load], cons=[math], arrive="tx")
    qempty = lm.barrier(pipeline=qring, prod=[math], cons=[load], arrive="member", primed=True)
    ring = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=ring, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=ring, prod=[math], cons=[load], arrive="member", primed=True)
    sched = lm.scheduler(kind="grouped", tiles=(H,), offsets=CUQ, block=64)
    with load:
        for t in lm.tiles(sched):
            first = lm.ld(INDPTR, t.group)
            kvlen = lm.ld(KVLEN, t.group)
            qlen = lm.ld(CUQ, t.group + 1) - lm.ld(CUQ, t.group)
            last = lm.min(kvlen - qlen + (t.m + 1) * 64, kvlen)
            n = lm.cdiv(last, PS)
            sq = lm.step(qring)
            lm.wait(qempty, stage=sq)
            q.tma_load(Q, coords=(0, t.n, t.row0), box=(D, 1, 64), stage=sq, barrier=qfull)
            for i in lm.range(n):
                s = lm.step(ring)
                lm.wait(empty, stage=s)
                page = lm.ld(INDEX, first + i)
                k.tma_load(KC, coords=(0, t.n // GROUP, 0, page), box=(D, 1, PS, 1), stage=s, barrier=full)
                v.tma_load(VC, coords=(0, t.n // GROUP, 0, page), box=(D, 1, PS, 1), stage=s, barrier=full)
    with math:
        x = lm.frag(shape=(64, PS), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            kvlen = lm.ld(KVLEN, t.group)
            qlen = lm.ld(CUQ, t.group + 1) - lm.ld(CUQ, t.group)
            last = lm.min(kvlen - qlen + (t.m + 1) * 64, kvlen)
            n = lm.cdiv(last, PS)
            o = lm.frag(shape=(64, D), dtype=lm.f32, form="acc", init=0.0)
            m = lm.rowvec(x, init=-lm.inf)
            den = lm.rowvec(x, init=0.0)
            pos = lm.iota(x, 0, base=kvlen - qlen + t.m * 64)
            sq = lm.step(qring)
            lm.wait(qfull, stage=sq)
            for i in lm.range(n):
                s = lm.step(ring)
                lm.wait(full, stage=s)
                lm.mma(x, q[sq], k[s], init=True)
                lm.mma_wait(pending=0)
                col = lm.iota(x, 1, base=i * PS)
                y = lm.where(col <= pos and col < kvlen, x * (scale * 1.44269504), -lm.inf)
                new = lm.max(m, lm.reduce(y, "max", axis=1))
                fix = lm.exp2(m - new)
                p = lm.exp2(y - new)
                den = den * fix + lm.sum(p, axis=1)
                m = new
                o = o * fix
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), v[s].T)
                lm.mma_wait(pending=0)
                lm.arrive(empty, stage=s)
            lm.arrive(qempty, stage=sq)
            row = lm.iota(o, 0)
            lm.store(O, lm.cast(o * lm.rcp(den), lm.bf16), coords=(0, t.n, t.row0 + row), mask=row < t.rows)
