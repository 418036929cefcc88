@cake.schedule(target="sm_90a")
def paged16_decode(lm, Q: LM.gmem3d[LM.bf16, "B", "HQ", 128], KC: LM.tma4d[LM.bf16, "PAGES", "HK", 16, 128], VC: LM.tma4d[LM.bf16, "PAGES", "HK", 16, 128], TABLE: LM.gmem1d[LM.i32, "BP"], LEN: LM.gmem1d[LM.i32, "B"],
                   O: LM.gmem3d[LM.bf16, "B", "HQ", 128], PAGES: LM.i32, B: LM.i32, HQ: LM.i32, HK: LM.i32, MAXP: LM.i32, BP: LM.i32, scale: LM.f32, *, STAGES=3):
    """Decode over pages of 16 tokens: four pages make a block of 64 keys in a slot; the pages behind the end of a sequence are not fetched again but page 0 is, and masked."""
    lm.launch(grid="persistent")
    lm.assume(BP == B * MAXP and HK > 0)
    lm.assume(HQ % HK == 0)
    lm.assume(HQ // HK <= 16)
    lm.assume_values(TABLE, 0, PAGES)
    lm.assume_values(LEN, 1, MAXP * 16 + 1)
    kv_bytes = STAGES * 64 * 256
    pool = lm.smem(16 * 256 + 2 * kv_bytes)
    smem_q = pool.view(offset=2 * kv_bytes, shape=(16, 128), dtype=lm.bf16, swizzle="128b")
    smem_k = pool.view(offset=0, shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    smem_v = pool.view(offset=kv_bytes, shape=(64, 128), dtype=lm.bf16, stage=STAGES, swizzle="128b")
    math = lm.role(warps=range(0, 1))
    load = lm.role(warps=range(1, 2))
    kv = lm.pipeline(stages=STAGES)
    full = lm.barrier(pipeline=kv, prod=[load], cons=[math], arrive="tx")
    empty = lm.barrier(pipeline=kv, prod=[math], cons=[load], arrive="warp", primed=True)
    meet = lm.named_barrier(math)
    sched = lm.scheduler(kind="static", tiles=(HK, B), names=("h", "b"))
    group = HQ // HK
    with load:
        for t in lm.tiles(sched):
            n = lm.ld(LEN, t.b)
            for j in lm.range(lm.cdiv(n, 64)):
                s = lm.step(kv)
                lm.wait(empty, stage=s)
                for i in lm.static_range(4):
                    slot = 4 * j + i
                    page = 0
                    if slot * 16 < n:
                        page = lm.ld(TABLE, t.b * MAXP + slot)
                    smem_k[s].rows(16 * i, 16).tma_load(KC, coords=(0, 0, t.h, page), stage=s, barrier=full)
                    smem_v[s].rows(16 * i, 16).tma_load(VC, coords=(0, 0, t.h, page), stage=s, barrier=full)
    with math:
        for t in lm.tiles(sched):
            n = lm.ld(LEN, t.b)
            q16 = lm.load(Q, coords=(0, t.h * group, t.b), shape=(16, 128), form="vec", clip=True)
            lm.sync(meet)
            smem_q.store(q16)
            lm.sync(meet)
            q = smem_q.ldmatrix(form="a")
            o = lm.frag(shape=(16, 128), dtype=lm.f32, form="acc", init=0.0)
            top = lm.rowvec(like=o, init=0.0) - lm.inf
            total = lm.rowvec(like=o, init=0.0)
            for j in lm.range(lm.cdiv(n, 64)):
                s = lm.step(kv)
                lm.wait(full, stage=s)
                acc = lm.frag(shape=(16, 64), dtype=lm.f32, form="acc", init=0.0)
                lm.mma(acc, q, smem_k[s].ldmatrix(form="b"))
                x = lm.where(64 * j + lm.iota(acc, 1) < n, acc * scale, -lm.inf)
                new = lm.max(top, lm.reduce(x, "max", axis=1))
                fix = lm.exp(top - new)
                p = lm.exp(x - new)
                total = total * fix + lm.reduce(p, "add", axis=1)
                top = new
                o = o * fix
                lm.mma(o, lm.cast(p, lm.bf16, form="a"), smem_v[s].T.ldmatrix(form="b"))
                lm.arrive(empty, stage=s)
            lm.store(O, lm.cast(o * lm.rcp(total), lm.bf16), coords=(0, t.h * group, t.b), mask=lm.in_bounds(o, group, 128))
