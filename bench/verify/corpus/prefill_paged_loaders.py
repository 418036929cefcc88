@cake.schedule(target="sm_90a")
def prefill_paged_loaders(lm, Q: LM.tma3d[LM.bf16, "TOK", "HQ", 128], KP: LM.tma3d[LM.bf16, "FRAMES", 64, 128], VP: LM.tma3d[LM.bf16, "FRAMES", 64, 128],
                          START: LM.gmem1d[LM.i32].const, SEEN: LM.gmem1d[LM.i32].const, TABLE: LM.gmem1d[LM.i32].const, O: LM.gmem3d[LM.bf16, "TOK", "HQ", 128],
                          TOK: LM.i32, HQ: LM.i32, HK: LM.i32, FRAMES: LM.i32, SEQS: LM.i32, CHUNK: LM.i32, MAXP: LM.i32, scale: LM.f32):
    """A chunk of every sequence against its paged cache, the chunk's own keys included: pages of 64 rows, two a block; keys and values come by a warp of their own."""
    lm.launch(grid="persistent")
    lm.assume(HK > 0 and HQ % HK == 0 and SEQS > 0 and CHUNK > 0 and MAXP > 0)
    lm.assume_values(START, 0, TOK + 1, sorted=True)
    lm.assume_values(TABLE, 0, FRAMES // HK)
    qb, kb = 128 * 128 * 2, 128 * 128 * 2
    pool = lm.smem(qb + 4 * kb)
    q_s = pool.view(offset=0, shape=(128, 128), dtype=lm.bf16, swizzle="128b")
    k_s = pool.view(offset=qb, shape=(128, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    v_s = pool.view(offset=qb + 2 * kb, shape=(128, 128), dtype=lm.bf16, stage=2, swizzle="128b")
    softmax = lm.role(warps=range(0, 8), members=2)
    keys = lm.role(warps=range(8, 9))
    values = lm.role(warps=range(9, 10))
    qr = lm.pipeline(stages=1)
    q_in = lm.barrier(pipeline=qr, prod=[keys], cons=[softmax], arrive="tx")
    q_out = lm.barrier(pipeline=qr, prod=[softmax], cons=[keys], arrive="member", primed=True)
    kr = lm.pipeline(stages=2)
    k_in = lm.barrier(pipeline=kr, prod=[keys], cons=[softmax], arrive="tx")
    k_out = lm.barrier(pipeline=kr, prod=[softmax], cons=[keys], arrive="member", primed=True)
    vr = lm.pipeline(stages=2)
    v_in = lm.barrier(pipeline=vr, prod=[values], cons=[softmax], arrive="tx")
    v_out = lm.barrier(pipeline=vr, prod=[softmax], cons=[values], arrive="member", primed=True)
    sched = lm.scheduler(kind="static", tiles=(lm.cdiv(CHUNK, 128), HQ, SEQS), names=("m", "h", "b"), raster="heavy_first")

    with keys:
        for t in lm.tiles(sched):
            q0 = lm.ld(START, t.b)
            fresh = lm.ld(START, t.b + 1) - q0
            if t.m * 128 < fresh:
                past = lm.ld(SEEN, t.b)
                reach = lm.min(past + (t.m + 1) * 128, past + fresh)
                pages = lm.cdiv(reach, 64)
                sq = lm.step(qr)
                lm.wait(q_out, stage=sq)
                q_s.tma_load(Q, coords=(0, t.h, q0 + t.m * 128), stage=sq, barrier=q_in, box=(128, 1, 128))
                for j in lm.range(lm.cdiv(reach, 128)):
                    s = lm.step(kr)
                    lm.wait(k_out, stage=s)
                    for i in lm.static_range(2):
                        page = lm.ld(TABLE, t.b * MAXP + lm.min(2 * j + i, pages - 1))
                        k_s.rows(64 * i, 64).tma_load(KP, coords=(0, 0, page * HK + t.h // (HQ // HK)), stage=s, barrier=k_in)

    with values:
        for t in lm.tiles(sched):
            fresh = lm.ld(START, t.b + 1) - lm.ld(START, t.b)
            if t.m * 128 < fresh:
                past = lm.ld(SEEN, t.b)
                reach = lm.min(past + (t.m + 1) * 128, past + fresh)
                pages = lm.cdiv(reach, 64)
                for j in lm.range(lm.cdiv(reach, 128)):
                    s = lm.step(vr)
                    lm.wait(v_out, stage=s)
                    for i in lm.static_range(2):
                        page = lm.ld(TABLE, t.b * MAXP + lm.min(2 * j + i, pages - 1))
                        v_s.rows(64 * i, 64).tma_load(VP, coords=(0, 0, page * HK + t.h // (HQ // HK)), stage=s, barrier=v_in)

    with softmax:
        half = 64 * softmax.index
        z = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc")
        for t in lm.tiles(sched):
            q0 = lm.ld(START, t.b)
            fresh = lm.ld(START, t.b + 1) - q0
            if t.m * 128 < fresh:
                past = lm.ld(SEEN, t.b)
                reach = lm.min(past + (t.m + 1) * 128, past + fresh)
                row0 = t.m * 128 + half
                o = lm.frag(shape=(64, 128), dtype=lm.f32, form="acc", init=0.0)
                top = lm.rowvec(z, init=-1e30)
                den = lm.rowvec(z, init=0.0)
                sq = lm.step(qr)
                lm.wait(q_in, stage=sq)
                for j in lm.range(lm.cdiv(reach, 128)):
                    s = lm.step(kr)
                    lm.wait(k_in, stage=s)
                    lm.mma(z, q_s[sq].rows(half, 64), k_s[s], init=True)
                    lm.mma_wait(pending=0)
                    lm.arrive(k_out, stage=s)
                    key = lm.iota(z, axis=1, base=j * 128)
                    x = lm.where((key < reach) & (key <= lm.iota(z, axis=0, base=past + row0)), z * scale, -lm.inf)
                    peak = lm.max(top, lm.reduce(x, "max", axis=1))
                    p = lm.exp2(x - peak)
                    fix = lm.exp2(top - peak)
                    den = den * fix + lm.sum(p, axis=1)
                    o = o * fix
                    top = peak
                    pa = lm.cast(p, lm.bf16, form="a")
                    u = lm.step(vr)
                    lm.wait(v_in, stage=u)
                    lm.mma(o, pa, v_s[u].T)
                    lm.mma_wait(pending=0)
                    lm.arrive(v_out, stage=u)
                lm.arrive(q_out, stage=sq)
                own = lm.iota(o, axis=0, base=row0)
                lm.store(O, lm.cast(o * lm.rcp(den), lm.bf16), coords=(0, t.h, q0 + own), mask=own < fresh)
